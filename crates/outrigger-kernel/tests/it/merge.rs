//! One message per tool execution (E2, E3): what single tools become.

use outrigger_kernel::merge::{Author, Converter, Form, ToolProcessor, bundled, details};
use outrigger_protocol::merged::{ConversationMessage, Details};
use outrigger_protocol::message::Part;
use serde_json::{Value, json};

/// Creates a part with a complete call.
pub(crate) fn call(
    tool: &str,
    input: Value,
    output: &str,
    metadata: Value,
    is_error: bool,
) -> Part {
    let time = json!({ "start": 1000, "end": 1250 });
    let state = if is_error {
        json!({ "status": "error", "input": input, "error": output, "metadata": metadata, "time": time })
    } else {
        json!({ "status": "completed", "input": input, "output": output, "title": "", "metadata": metadata, "time": time })
    };
    let part = json!({
        "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_2", "type": "tool", "callID": "c", "tool": tool, "state": state,
    });
    serde_json::from_value(part).unwrap()
}

pub(crate) fn assistant() -> Author {
    Author {
        role: "assistant",
        created: 900,
        attempt: "msg_1".into(),
    }
}

fn said_by(converter: &Converter, part: &Part) -> ConversationMessage {
    let mut all = converter.part(&assistant(), part, Form::Merged);
    assert_eq!(all.len(), 1);
    all.remove(0).message
}

fn merged(
    tool: &str,
    input: Value,
    output: &str,
    metadata: Value,
    is_error: bool,
) -> ConversationMessage {
    let part = call(tool, input, output, metadata, is_error);
    said_by(&Converter::default(), &part)
}

#[test]
fn a_merged_message_has_what_e2_names() {
    let message = merged(
        "read",
        json!({"filePath": "/p/a"}),
        "content",
        json!({"preview": "c"}),
        false,
    );
    assert_eq!(
        serde_json::to_value(&message).unwrap(),
        json!({
            "id": "prt_1-merged", "role": "assistant", "messageType": "tool_execution", "content": "Read /p/a", "timestamp": 1000,
            "metadata": {
                "tool_name": "read", "tool_use_id": "c", "input": {"filePath": "/p/a"}, "output": "content", "is_error": false,
                "duration_ms": 250, "summary": "Read /p/a",
            },
        })
    );
}

#[test]
fn what_is_missing_has_a_default() {
    // A clock that was set back gives no negative duration.
    let mut part = serde_json::to_value(call("x", json!(null), "o", json!(null), false)).unwrap();
    part["state"]["time"]["end"] = json!(900);
    let part: Part = serde_json::from_value(part).unwrap();
    let message = said_by(&Converter::default(), &part);
    let field = |key: &str| message.metadata[key].clone();
    assert_eq!(
        (field("input"), field("is_error"), field("duration_ms")),
        (json!(null), json!(false), json!(0))
    );
    assert_eq!(
        (field("tool_name"), message.content.as_str()),
        (json!("x"), "x completed")
    );
}

#[test]
fn summaries_by_table() {
    let change =
        |exists: Value| json!({"exists": exists, "filediff": {"before": "a", "after": "b"}});
    for (tool, input, metadata, is_error, want) in [
        (
            "edit",
            json!({"filePath": "/p/a"}),
            change(json!(null)),
            false,
            "Updated /p/a",
        ),
        (
            "edit",
            json!({}),
            change(json!(null)),
            false,
            "Updated file",
        ),
        (
            "edit",
            json!({"filePath": "/p/a"}),
            json!({}),
            true,
            "edit completed",
        ),
        (
            "write",
            json!({"filePath": "/p/a", "content": "b"}),
            change(json!(false)),
            false,
            "Created /p/a",
        ),
        (
            "write",
            json!({"filePath": "/p/a", "content": "b"}),
            change(json!(true)),
            false,
            "Updated /p/a",
        ),
        (
            "write",
            json!({"content": "b"}),
            change(json!(false)),
            false,
            "Created file",
        ),
        (
            "Write",
            json!({"file_path": "a", "content": "b"}),
            json!(null),
            false,
            "Created a",
        ),
        (
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            json!(null),
            false,
            "Updated a",
        ),
        (
            "read",
            json!({"filePath": "/p/a"}),
            json!({}),
            false,
            "Read /p/a",
        ),
        (
            "Read",
            json!({"file_path": "a"}),
            json!({}),
            false,
            "Read a",
        ),
        ("read", json!({}), json!({}), false, "Read file"),
        (
            "read",
            json!({"filePath": "/p/a"}),
            json!({}),
            true,
            "read completed",
        ),
        (
            "glob",
            json!({"pattern": "*"}),
            json!({}),
            false,
            "glob completed",
        ),
        (
            "grep",
            json!({"pattern": "x"}),
            json!({}),
            false,
            "grep completed",
        ),
        (
            "bash",
            json!({"command": "ls"}),
            json!({}),
            false,
            "bash completed",
        ),
        ("task", json!({}), json!({}), false, "task completed"),
    ] {
        let message = merged(tool, input.clone(), "o", metadata, is_error);
        assert_eq!(
            (message.content.as_str(), &message.metadata["summary"]),
            (want, &json!(want)),
            "{tool} {input}"
        );
    }
}

#[test]
fn details_by_table() {
    let diff = |old: &str, new: &str, path: Option<&str>| {
        Some(Details::Diff {
            old_content: old.into(),
            new_content: new.into(),
            path: path.map(Into::into),
        })
    };
    let files = |files: &[&str]| {
        Some(Details::FileList {
            files: files.iter().map(ToString::to_string).collect(),
        })
    };
    let shell = |stdout: &str, stderr: &str, exit_code: Option<i64>| {
        Some(Details::CommandOutput {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code,
        })
    };
    let whole = json!({"filediff": {"before": "one\ntwo\n", "after": "one\n2\n"}});
    let new = json!({"exists": false, "filediff": {"before": "", "after": "b"}});
    let large = |exists: bool| json!({"exists": exists, "filediff": {"file": "/p/a"}});
    for (tool, input, output, metadata, is_error, want) in [
        // The file's real content, not the fragments of the call.
        (
            "edit",
            json!({"filePath": "/p/a", "oldString": "two", "newString": "2"}),
            "ok",
            whole,
            false,
            diff("one\ntwo\n", "one\n2\n", Some("/p/a")),
        ),
        (
            "write",
            json!({"filePath": "/p/a", "content": "b"}),
            "ok",
            new,
            false,
            diff("", "b", Some("/p/a")),
        ),
        (
            "edit",
            json!({"filePath": "/p/a", "oldString": "two", "newString": "2"}),
            "no",
            json!({}),
            true,
            None,
        ),
        // Too large to be reported whole.
        (
            "edit",
            json!({"filePath": "/p/a", "oldString": "two", "newString": "2"}),
            "ok",
            large(true),
            false,
            diff("two", "2", Some("/p/a")),
        ),
        (
            "write",
            json!({"filePath": "/p/a", "content": "b"}),
            "ok",
            large(true),
            false,
            None,
        ),
        (
            "write",
            json!({"filePath": "/p/a", "content": "b"}),
            "ok",
            large(false),
            false,
            diff("", "b", Some("/p/a")),
        ),
        // Other agents.
        (
            "Edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            "ok",
            json!(null),
            false,
            diff("x", "y", Some("a")),
        ),
        (
            "Write",
            json!({"content": "b"}),
            "ok",
            json!(null),
            false,
            diff("", "b", None),
        ),
        (
            "MultiEdit",
            json!({"file_path": "a", "edits": []}),
            "ok",
            json!(null),
            false,
            None,
        ),
        (
            "read",
            json!({"filePath": "/p/a"}),
            "content",
            json!({}),
            false,
            None,
        ),
        (
            "glob",
            json!({"pattern": "*"}),
            "/p/a:b\n/p/c\n\n(Results are truncated.)",
            json!({}),
            false,
            files(&["/p/a:b", "/p/c"]),
        ),
        (
            "glob",
            json!({"pattern": "*"}),
            "No files found",
            json!({}),
            false,
            files(&[]),
        ),
        (
            "glob",
            json!({"pattern": "*"}),
            "/p/a",
            json!({}),
            true,
            None,
        ),
        (
            "grep",
            json!({"pattern": "x"}),
            "Found 2 matches\n/p/a:\n  Line 1: /x:\n\n/p/b:\n  Line 3: x",
            json!({}),
            false,
            files(&["/p/a", "/p/b"]),
        ),
        (
            "Grep",
            json!({"pattern": "x"}),
            "Found 2 files\n/p/a\n./b\n/p/c:1:x",
            json!(null),
            false,
            files(&["/p/a", "./b"]),
        ),
        (
            "bash",
            json!({"command": "ls"}),
            "out",
            json!({"exit": 0, "stdout": "out", "stderr": "warn"}),
            false,
            shell("out", "warn", Some(0)),
        ),
        (
            "bash",
            json!({"command": "ls"}),
            "out\n\n<shell_metadata>\nlate\n</shell_metadata>",
            json!({"exit": null, "output": "out"}),
            false,
            shell("out", "", None),
        ),
        (
            "bash",
            json!({"command": "ls"}),
            "not found",
            json!({"exit": 127}),
            true,
            shell("not found", "", Some(127)),
        ),
        (
            "Bash",
            json!({"command": "ls"}),
            "out",
            json!(null),
            false,
            shell("out", "", None),
        ),
        ("task", json!({}), "o", json!({}), false, None),
    ] {
        let message = merged(tool, input.clone(), output, metadata.clone(), is_error);
        assert_eq!(details(&message), want, "{tool} {input} {metadata}");
        assert_eq!(
            message.metadata.contains_key("details"),
            want.is_some(),
            "{tool}"
        );
    }
}

/// E3: camel case on the wire, `{type, data}`.
#[test]
fn details_on_the_wire() {
    let message = merged(
        "bash",
        json!({}),
        "o",
        json!({"exit": 1, "stdout": "o", "stderr": "e"}),
        false,
    );
    assert_eq!(
        message.metadata["details"],
        json!({"type": "commandOutput", "data": {"stdout": "o", "stderr": "e", "exitCode": 1}})
    );
    let message = merged("glob", json!({}), "/p/a", json!({}), false);
    assert_eq!(
        message.metadata["details"],
        json!({"type": "fileList", "data": {"files": ["/p/a"]}})
    );
    let message = merged(
        "write",
        json!({"filePath": "a", "content": "n"}),
        "o",
        json!({}),
        false,
    );
    assert_eq!(
        message.metadata["details"],
        json!({"type": "diff", "data": {"oldContent": "", "newContent": "n", "path": "a"}})
    );
}

// A tool that the bundled processors do not know.
struct Weather;

impl ToolProcessor for Weather {
    fn tools(&self) -> &[&str] {
        &["weather", "read"]
    }
    fn details(&self, start: &ConversationMessage, _: &ConversationMessage) -> Option<Details> {
        let place = start.metadata.get("input")?.get("place")?.as_str()?;
        Some(Details::FileList {
            files: vec![place.to_owned()],
        })
    }
    fn summary(
        &self,
        _: &ConversationMessage,
        result: &ConversationMessage,
        details: Option<&Details>,
    ) -> Option<String> {
        details.map(|_| format!("Sky: {}", result.content))
    }
}

/// E3: a new tool needs a processor and nothing else; the first that knows a tool describes it.
#[test]
fn processors_can_be_added() {
    let mut processors: Vec<Box<dyn ToolProcessor>> = vec![Box::new(Weather)];
    processors.extend(bundled());
    let converter = Converter::new(processors);
    for (tool, input, want) in [
        ("weather", json!({"place": "Rome"}), "Sky: blue"),
        ("weather", json!({}), "weather completed"),
        ("read", json!({"place": "Oslo"}), "Sky: blue"),
        (
            "edit",
            json!({"filePath": "a", "newString": "b"}),
            "Updated a",
        ),
    ] {
        let part = call(tool, input, "blue", json!(null), false);
        assert_eq!(said_by(&converter, &part).content, want, "{tool}");
    }
}

/// E3: a tool of a plugin or an MCP server describes its result itself, in the same form.
#[test]
fn a_result_describes_itself() {
    let files = json!({ "type": "fileList", "data": { "files": ["a"] } });
    let metadata = json!({ "details": files, "summary": "Deployed\na" });
    let message = merged("deploy", json!({}), "o", metadata.clone(), false);
    assert_eq!(message.content, "Deployed a");
    assert_eq!(message.metadata["details"], files);
    for (metadata, is_error) in [
        (metadata, true),
        (
            json!({ "details": { "type": "page", "data": {} }, "summary": " " }),
            false,
        ),
        (json!({ "details": 7, "summary": "x".repeat(501) }), false),
    ] {
        let message = merged("deploy", json!({}), "o", metadata, is_error);
        assert_eq!(message.content, "deploy completed");
        assert!(!message.metadata.contains_key("details"));
    }
}

/// Values that are not details have separate fields: the child conversation of a subagent, the todos, the answers to a
/// question.
#[test]
fn what_is_linked_stands_beside_the_details() {
    for (tool, metadata, key, want) in [
        (
            "task",
            json!({"sessionId": "ses_2"}),
            "conversation",
            json!("ses_2"),
        ),
        (
            "todowrite",
            json!({"todos": [{"content": "a"}]}),
            "todos",
            json!([{"content": "a"}]),
        ),
        (
            "question",
            json!({"answers": [["a"]]}),
            "answers",
            json!([["a"]]),
        ),
        (
            "read",
            json!({"display": {"type": "directory", "entries": ["b/"]}}),
            "details",
            json!({"type": "fileList", "data": {"files": ["b/"]}}),
        ),
    ] {
        let message = merged(tool, json!({}), "o", metadata, false);
        assert_eq!(message.metadata[key], want, "{tool}");
        assert!(
            !merged(tool, json!({}), "o", json!({}), false)
                .metadata
                .contains_key(key)
        );
    }
}
