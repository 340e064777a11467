//! Recording and replay.

use std::path::Path;

use outrigger_models::{Models, ModelsOptions, StreamOptions};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::model::{ChatMessage, Content, ModelRequest};
use serde_json::json;

use crate::server::{Reply, chunks, hello, serve, sse};
use crate::{KEY, collect, mock, models, options, request, resolve, user};

fn call(id: &str, path: &str) -> ChatMessage {
    ChatMessage::Assistant {
        content: vec![
            Content::Reasoning {
                text: "hm".into(),
                metadata: None,
            },
            Content::ToolCall {
                call_id: id.into(),
                tool: "read".into(),
                input: json!({"filePath": path}),
                metadata: None,
            },
        ],
    }
}

fn result(id: &str, content: String) -> ChatMessage {
    ChatMessage::Tool {
        call_id: id.into(),
        tool: "read".into(),
        content,
        is_error: false,
    }
}

fn first(dir: &Path) -> ModelRequest {
    let system = ChatMessage::System {
        content: format!("You work in {}", dir.display()),
    };
    request(
        vec![system, user(&format!("fix {}/a.txt", dir.display()))],
        &["read", "edit"],
    )
}

fn second(dir: &Path, id: &str, took: &str) -> ModelRequest {
    let mut next = first(dir);
    next.messages
        .push(call(id, &format!("{}/a.txt", dir.display())).into());
    let text = format!("read {}/a.txt in {took} for ses_{id}0000000", dir.display());
    next.messages.push(result(id, text).into());
    next
}

fn replace(request: &mut ModelRequest, at: usize, message: ChatMessage) {
    let mut messages: Vec<_> = request.messages.iter().cloned().collect();
    messages[at] = message.into();
    request.messages = messages.into_iter().collect();
}

fn tool_reply(dir: &Path) -> Reply {
    let arguments = json!({"filePath": dir.join("a.txt")}).to_string();
    let text = format!("Look at {}/a.txt now", dir.display());
    let (head, tail) = text.split_at(14);
    sse(&chunks(&[
        &json!({"choices": [{"delta": {"content": head}}]}).to_string(),
        &json!({"choices": [{"delta": {"content": tail}}]}).to_string(),
        &json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": arguments}}]}, "finish_reason": "tool_calls"}]}).to_string(),
        "[DONE]",
    ]))
}

fn at(dir: &Path) -> StreamOptions {
    StreamOptions {
        directory: dir.to_path_buf(),
        ..options(0)
    }
}

fn player(file: &Path) -> Models {
    models(
        json!({"tape": {"npm": "cassette", "options": {"file": file}}}),
        &[],
    )
}

async fn record(dir: &Path, file: &Path) {
    let server = serve(vec![tool_reply(dir), hello(), hello()]).await;
    let mut config = mock(&server.url);
    config["mock"]["options"]["headers"] = json!({"x-api-key": "another-secret-key"});
    let recording = Models::new(ModelsOptions {
        providers: config.as_object().cloned().unwrap(),
        record: Some(file.to_path_buf()),
        ..ModelsOptions::default()
    });
    let resolved = resolve(&recording, "mock/m1");
    let mut title = request(vec![user(&format!("title, and my key is {KEY}"))], &[]);
    title.headers = vec![("authorization".into(), "Bearer other".into())];
    for req in [first(dir), second(dir, "c1", "3 ms"), title] {
        let (_, error) = collect(resolved.stream(&req, &at(dir))).await;
        assert!(error.is_none(), "{error:?}");
    }
}

#[tokio::test]
async fn a_recording_is_replayed_elsewhere() {
    let (here, there, files) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let file = files.path().join("sub/talk.jsonl");
    record(here.path(), &file).await;
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 4);
    for secret in [
        KEY,
        "another-secret-key",
        "Bearer",
        "127.0.0.1",
        here.path().to_str().unwrap(),
    ] {
        assert!(!text.contains(secret), "{secret} is in the cassette");
    }
    let tape = resolve(&player(&file), "tape/any");
    let dir = there.path();
    let (lines, error) = collect(tape.stream(&first(dir), &at(dir))).await;
    assert!(error.is_none(), "{error:?}");
    let shown = lines.join("\n").replace(dir.to_str().unwrap(), "DIR");
    insta::assert_snapshot!(shown, @r#"
    started
    text 0 [
    text 0 "Look "
    text 0 "at "
    text 0 "DIR/a.txt "
    text 0 "now"
    tool read c1 [
    tool read c1 ] {"filePath":"DIR/a.txt"}
    text 0 ]
    finished tool-calls 0/0
    "#);
    // Different identifiers and times still make the same request.
    let (lines, error) = collect(tape.stream(&second(dir, "c9", "812 ms"), &at(dir))).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(lines.last().map(String::as_str), Some("finished stop 0/0"));
    // The recorded title, then the plain one.
    for want in ["text 0 \"Hi\"", "text 0 \"Replayed conversation\""] {
        let (lines, error) =
            collect(tape.stream(&request(vec![user("other")], &[]), &at(dir))).await;
        assert!(error.is_none());
        assert_eq!(lines[2], want);
    }
    let error = collect(tape.stream(&first(dir), &at(dir))).await.1.unwrap();
    assert_eq!(error.code(), "model.cassette_exhausted");
}

#[tokio::test]
async fn a_difference_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("talk.jsonl");
    record(dir.path(), &file).await;
    let show = |error: outrigger_models::ModelError| {
        format!("{} | {error}", error.code()).replace(file.to_str().unwrap(), "FILE")
    };
    let mut shown = Vec::new();
    let mut other_prompt = first(dir.path());
    replace(&mut other_prompt, 1, user("something else"));
    let mut other_tools = first(dir.path());
    other_tools.tools.pop();
    for req in [other_prompt, other_tools] {
        let tape = resolve(&player(&file), "tape/any");
        shown.push(show(
            collect(tape.stream(&req, &at(dir.path()))).await.1.unwrap(),
        ));
    }
    let tape = resolve(&player(&file), "tape/any");
    assert!(
        collect(tape.stream(&first(dir.path()), &at(dir.path())))
            .await
            .1
            .is_none()
    );
    let mut other_result = second(dir.path(), "c1", "3 ms");
    replace(&mut other_result, 3, result("c1", "not found".into()));
    shown.push(show(
        collect(tape.stream(&other_result, &at(dir.path())))
            .await
            .1
            .unwrap(),
    ));
    insta::assert_snapshot!(shown.join("\n"), @r#"
    model.cassette_mismatch | cassette FILE: request 1 differs from the recording at `/messages/0/text`: recorded "fix {DIR}/a.txt", got "something else"
    model.cassette_mismatch | cassette FILE: request 1 differs from the recording at `/tools/0`: recorded "edit", got "read"
    model.cassette_mismatch | cassette FILE: request 2 differs from the recording at `/messages/2/text`: recorded "read {DIR}/a.txt in {TIME} for {ID}", got "not found"
    "#);
}

#[tokio::test]
async fn files_that_are_no_cassettes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.jsonl");
    let mut shown = Vec::new();
    for text in [
        None,
        Some("hello"),
        Some("{\"cassette\":9}"),
        Some("{\"cassette\":1}\n{\"request\":1}"),
    ] {
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let tape = resolve(&player(&file), "tape/any");
        let error = collect(tape.stream(&first(dir.path()), &at(dir.path())))
            .await
            .1
            .unwrap();
        shown.push(format!("{} | {error}", error.code()).replace(file.to_str().unwrap(), "FILE"));
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    model.cassette | cassette FILE: cannot read it: No such file or directory (os error 2)
    model.cassette | cassette FILE: the first line is not a cassette header
    model.cassette | cassette FILE: has format 9, and this version reads format 1
    model.cassette | cassette FILE: line 2: invalid type: integer `1`, expected struct ModelRequest at line 1 column 12
    "#);
}
