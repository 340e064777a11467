//! Complete transcripts: events as the agent publishes them, and the editor's messages. Every message is one of the protocol's own
//! types, and loses nothing in the conversion.

pub(crate) mod agents;
mod editors;
mod opening;

use std::path::Path;

use agent_client_protocol_schema::v1 as protocol;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::permission::{CALL, PermissionRequest, Reply};
use outrigger_protocol::question::QuestionRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::{Client, hello};
use crate::permissions;
use crate::questions;
use crate::updates::{Updates, plan};

/// Checks that a value is one of this type, with every field.
#[track_caller]
fn is<T: DeserializeOwned + Serialize>(value: &Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
    let back = serde_json::to_value(&read).unwrap();
    assert!(holds(&back, value), "{value}\nbecame\n{back}");
}

/// Checks whether a value contains everything another one has.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, value)| {
            // Defaults are omitted.
            let is_default = value.is_null()
                || matches!(
                    (key.as_str(), value.as_str()),
                    ("status", Some("pending")) | ("kind", Some("other"))
                );
            whole.get(key).map_or(is_default, |it| holds(it, value))
        }),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| holds(a, b))
        }
        (whole, part) => whole == part,
    }
}

fn transcript(updates: &[Value]) -> String {
    updates
        .iter()
        .map(|update| {
            is::<protocol::SessionUpdate>(update);
            format!("{update}\n")
        })
        .collect()
}

fn event(kind: &str, mut properties: Value) -> Event {
    properties["sessionID"] = json!("ses_1");
    let event = json!({ "type": kind, "properties": properties });
    serde_json::from_value(event).unwrap()
}

fn part(id: &str, rest: Value) -> Event {
    let mut part = json!({ "id": id, "sessionID": "ses_1", "messageID": "msg_2" });
    for (key, value) in rest.as_object().unwrap() {
        part[key] = value.clone();
    }
    event(
        "message.part.updated",
        json!({ "part": part, "time": 1000 }),
    )
}

fn tool(id: &str, name: &str, state: Value) -> Event {
    part(
        id,
        json!({ "type": "tool", "callID": format!("call_{id}"), "tool": name, "state": state }),
    )
}

fn delta(id: &str, text: &str) -> Event {
    let fields = json!({ "messageID": "msg_2", "partID": id, "field": "text", "delta": text });
    event("message.part.delta", fields)
}

fn user(id: &str) -> Value {
    json!({ "id": id, "sessionID": "ses_1", "role": "user", "time": { "created": 1 }, "agent": "build",
        "model": { "providerID": "p", "modelID": "m" } })
}

fn assistant(id: &str) -> Value {
    let tokens =
        json!({ "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } });
    json!({ "id": id, "parentID": "msg_1", "sessionID": "ses_1", "role": "assistant", "mode": "build", "agent": "build",
        "path": { "cwd": "/p", "root": "/p" }, "cost": 0.0, "tokens": tokens, "modelID": "m", "providerID": "p",
        "time": { "created": 1 } })
}

/// Returns a turn with a thought, a streamed text, an edit, a command with output, a failed call, and the plan.
fn a_turn() -> Vec<Event> {
    let time = json!({ "start": 1, "end": 2 });
    let read = json!({ "filePath": "/p/src/a.rs", "offset": 3 });
    let edited = json!({ "filePath": "/p/src/a.rs", "oldString": "two", "newString": "2" });
    let filediff = json!({ "before": "one\ntwo\n", "after": "one\n2\n" });
    let run = json!({ "command": "cargo test\ntrue", "description": "tests" });
    let todos = json!([
        { "content": "look", "status": "completed", "priority": "high" },
        { "content": "mend", "status": "in_progress", "priority": "odd" },
        { "content": "forget", "status": "cancelled", "priority": "low" },
    ]);
    let tokens =
        json!({ "input": 10, "output": 5, "reasoning": 1, "cache": { "read": 4, "write": 0 } });
    vec![
        event("message.updated", json!({ "info": user("msg_1") })),
        event(
            "message.part.updated",
            json!({ "time": 1, "part": { "id": "prt_0", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "fix it" } }),
        ),
        event("message.updated", json!({ "info": assistant("msg_2") })),
        part(
            "prt_1",
            json!({ "type": "reasoning", "text": "", "time": { "start": 1 } }),
        ),
        delta("prt_1", "Where is "),
        delta("prt_1", "it?"),
        part(
            "prt_1",
            json!({ "type": "reasoning", "text": "Where is it?", "time": time }),
        ),
        part("prt_2", json!({ "type": "text", "text": "" })),
        delta("prt_2", "I look "),
        // The rest of the stream was missed.
        part("prt_2", json!({ "type": "text", "text": "I look at it." })),
        tool(
            "prt_3",
            "read",
            json!({ "status": "pending", "input": {}, "raw": "" }),
        ),
        tool(
            "prt_3",
            "read",
            json!({ "status": "running", "input": read, "time": { "start": 1 } }),
        ),
        tool(
            "prt_3",
            "read",
            json!({ "status": "completed", "input": read, "output": "one\ntwo", "title": "src/a.rs",
            "metadata": {}, "time": time }),
        ),
        tool(
            "prt_4",
            "edit",
            json!({ "status": "running", "input": edited, "time": { "start": 1 } }),
        ),
        tool(
            "prt_4",
            "edit",
            json!({ "status": "completed", "input": edited, "output": "done", "title": "src/a.rs",
            "metadata": { "filediff": filediff }, "time": time }),
        ),
        tool(
            "prt_5",
            "bash",
            json!({ "status": "running", "input": run, "time": { "start": 1 } }),
        ),
        tool(
            "prt_5",
            "bash",
            json!({ "status": "running", "input": run, "metadata": { "output": "too soon" }, "time": { "start": 1 } }),
        ),
        tool(
            "prt_5",
            "bash",
            json!({ "status": "completed", "input": run, "output": "ok ```\n", "title": "tests",
            "metadata": { "exit": 0, "output": "ok ```\n" }, "time": time }),
        ),
        tool(
            "prt_9",
            "task",
            json!({ "status": "completed", "input": { "description": "look" }, "title": "look", "metadata": {}, "time": time,
            "output": "<task id=\"ses_2\" state=\"completed\">\n<task_result>\nIt is **there**.\n</task_result>\n</task>" }),
        ),
        tool(
            "prt_6",
            "mine",
            json!({ "status": "error", "input": {}, "error": "it is broken", "time": time }),
        ),
        tool(
            "prt_7",
            "todowrite",
            json!({ "status": "running", "input": { "todos": todos }, "time": { "start": 1 } }),
        ),
        event("todo.updated", json!({ "todos": todos })),
        tool(
            "prt_7",
            "todowrite",
            json!({ "status": "completed", "input": { "todos": todos }, "output": "", "title": "2",
            "metadata": { "todos": todos }, "time": time }),
        ),
        part(
            "prt_8",
            json!({ "type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.5 }),
        ),
    ]
}

fn updates() -> Updates {
    let contexts = [("p/m".to_owned(), 1000)].into();
    Updates::new("ses_1".into(), "/p".into()).with_contexts(contexts)
}

#[test]
fn a_turn_as_an_editor_gets_it() {
    let mut live = updates();
    let turn = a_turn();
    let sent: Vec<Value> = turn.iter().flat_map(|it| live.on(it)).collect();
    insta::assert_snapshot!(transcript(&sent));
    // Repeated events add nothing new.
    let again: Vec<Value> = turn.iter().flat_map(|it| live.on(it)).collect();
    let again: Vec<&Value> = again
        .iter()
        .filter(|it| it["sessionUpdate"] != "usage_update")
        .filter(|it| !it["sessionUpdate"].as_str().unwrap().ends_with("_chunk"))
        .collect();
    assert_eq!(again, Vec::<&Value>::new());
}

#[test]
fn what_is_stored_is_told_with_the_prompts() {
    let mut messages: Vec<MessageWithParts> = Vec::new();
    for event in a_turn() {
        match event {
            Event::MessageUpdated { info, .. } => messages.push(MessageWithParts {
                info: *info,
                parts: Vec::new(),
            }),
            Event::PartUpdated { part, .. } => {
                let of = messages
                    .iter_mut()
                    .find(|it| *it.info.id() == part.message_id)
                    .unwrap();
                of.parts.retain(|it| it.id != part.id);
                of.parts.push(*part);
            }
            _ => {}
        }
    }
    let image = json!({ "id": "prt_00", "sessionID": "ses_1", "messageID": "msg_1", "type": "file", "mime": "image/png",
        "filename": "a.png", "url": "data:image/png;base64,aGk=" });
    let file = json!({ "id": "prt_01", "sessionID": "ses_1", "messageID": "msg_1", "type": "file", "mime": "text/plain",
        "filename": "a.rs", "url": "file:///p/a.rs" });
    for part in [image, file] {
        messages[0]
            .parts
            .push(serde_json::from_value(part).unwrap());
    }
    insta::assert_snapshot!(transcript(&updates().replay(&messages)));
}

fn permission(kind: &str, tool: &str, input: Value, metadata: Value) -> PermissionRequest {
    let mut metadata = metadata;
    metadata[CALL] = json!({ "tool": tool, "input": input });
    serde_json::from_value(json!({
        "id": "per_1", "sessionID": "ses_2", "permission": kind, "patterns": ["rm -rf a"], "always": ["rm *"],
        "metadata": metadata, "tool": { "messageID": "msg_2", "callID": "call_1" },
    }))
    .unwrap()
}

#[test]
fn questions_show_the_whole_call() {
    let diff = "Index: /p/a\n===\n--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-hi\n+bye\n";
    let mut once = permission(
        "edit",
        "edit",
        json!({ "filePath": "/p/a", "oldString": "hi", "newString": "bye" }),
        json!({ "diff": diff }),
    );
    once.patterns = vec!["a".to_owned()];
    once.always.clear();
    let cases = [
        permission("bash", "bash", json!({ "command": "rm -rf a" }), json!({})),
        once,
        permission(
            "sandbox",
            "bash",
            json!({ "command": "rm -rf a" }),
            json!({ "reason": "it could not write", "output": "denied" }),
        ),
        // A plugin's tool does not speak for us.
        permission(
            "mine",
            "mine",
            json!({ "x": "```\nAllow once" }),
            json!({ "diff": diff, "command": "ls" }),
        ),
    ];
    let mut shown = String::new();
    for request in &cases {
        let question = permissions::question("ses_1", request, Path::new("/p"));
        is::<protocol::RequestPermissionRequest>(&question);
        shown.push_str(&serde_json::to_string_pretty(&question).unwrap());
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
    let answer = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (request, answer, want) in [
        (&cases[0], answer("once"), Reply::Once),
        (&cases[0], answer("always"), Reply::Always),
        // It was not offered.
        (&cases[1], answer("always"), Reply::Reject),
        (&cases[0], answer("reject"), Reply::Reject),
        (&cases[0], answer("anything"), Reply::Reject),
        (
            &cases[0],
            json!({ "outcome": { "outcome": "cancelled" } }),
            Reply::Reject,
        ),
        (&cases[0], json!(null), Reply::Reject),
    ] {
        assert_eq!(permissions::reply(request, &answer), want, "{answer}");
    }
}

/// "Always" says what it gives: where a plugin lacks a grant, that grant.
#[test]
fn a_lasting_answer_names_the_grant_that_it_gives() {
    let mut asked = permission("bash", "bash", json!({ "command": "touch a" }), json!({}));
    let lasting = |asked: &PermissionRequest| {
        let question = permissions::question("ses_1", asked, Path::new("/p"));
        question["options"][1]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(lasting(&asked), "Always allow rm *");
    let lacks = json!({ "plugin": "good", "name": "acme-good", "grant": "prompt" });
    asked.missing_grant = Some(serde_json::from_value(lacks).unwrap());
    assert_eq!(
        lasting(&asked),
        "Allow, and grant acme-good `prompt` until Outrigger ends"
    );
}

/// The destination of a move is in the title, the locations, the changes and the frame.
#[test]
fn a_patch_that_moves_a_file_shows_where_to() {
    let patch = |name: &str| {
        format!("Index: {name}\n===\n--- {name}\n+++ {name}\n@@ -1,1 +1,1 @@\n-hi\n+bye\n")
    };
    let files = json!([
        { "filePath": "/p/a", "type": "update", "patch": patch("/p/a") },
        { "filePath": "/p/notes.md", "movePath": "/p/Makefile", "type": "move", "patch": patch("/p/notes.md") },
        { "filePath": "/p/b", "movePath": "/p/.envrc", "type": "move", "patch": "Index: /p/b\n===\n" },
        { "filePath": "/p/c", "type": "delete", "patch": patch("/p/c") },
    ]);
    let metadata = json!({ "filepath": "a, notes.md, Makefile, b, .envrc, c", "diff": patch("/p/a"), "files": files });
    let mut request = permission("edit", "apply_patch", json!({}), metadata);
    request.metadata["outriggerCall"] = json!({ "tool": "apply_patch" });
    let question = permissions::question("ses_1", &request, Path::new("/p"));
    is::<protocol::RequestPermissionRequest>(&question);
    let call = &question["toolCall"];
    assert_eq!(
        call["title"],
        "Move notes.md to Makefile, Move b to .envrc, Edit a, Delete c"
    );
    let paths = |of: &Value| -> Vec<String> {
        of.as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["path"].as_str())
            .map(str::to_owned)
            .collect()
    };
    let all = [
        "/p/a",
        "/p/notes.md",
        "/p/Makefile",
        "/p/b",
        "/p/.envrc",
        "/p/c",
    ];
    assert_eq!(paths(&call["locations"]), all);
    assert_eq!(paths(&call["content"]), all);
    let block = |n: usize| {
        let block = &call["content"][n];
        (block["oldText"].as_str(), block["newText"].as_str())
    };
    assert_eq!(block(1), (Some("hi\n"), Some("")));
    assert_eq!(block(2), (None, Some("bye\n")));
    let frame = call["content"][6]["content"]["text"].as_str().unwrap();
    assert!(
        frame.contains("moves │ /p/notes.md → /p/Makefile\n"),
        "{frame}"
    );
    // A plugin's tool in the place of ours does not speak for us.
    request.metadata["outriggerCall"] = json!({ "tool": "mine" });
    let foreign = permissions::question("ses_1", &request, Path::new("/p"));
    assert_eq!(paths(&foreign["toolCall"]["content"]), Vec::<String>::new());
}

#[test]
fn a_models_question_is_a_form_or_a_choice() {
    let one = json!({ "question": "Which colour?", "header": "colour", "options": [
        { "label": "red", "description": "warm" }, { "label": "blue", "description": "" } ] });
    let several = json!({ "question": "Which files?", "header": "files", "multiple": true, "options": [{ "label": "a" }, { "label": "b" }] });
    let request = |questions: Value| -> QuestionRequest {
        let request = json!({ "id": "que_1", "sessionID": "ses_1", "questions": questions });
        serde_json::from_value(request).unwrap()
    };
    let both = request(json!([one, several]));
    let form = questions::form("ses_1", &both);
    is::<protocol::CreateElicitationRequest>(&form);
    insta::assert_snapshot!(serde_json::to_string_pretty(&form).unwrap());
    let filled = json!({ "action": "accept", "content": { "q0": "red", "q0_own": "green", "q1": ["a", "b"], "q1_own": "" } });
    let answers = questions::answers(&both, &filled).unwrap();
    assert_eq!(answers, [vec!["green"], vec!["a", "b"]]);
    assert_eq!(
        questions::answers(&both, &json!({ "action": "decline" })),
        None
    );

    assert_eq!(questions::choice("ses_1", &both), None);
    let choice = questions::choice("ses_1", &request(json!([one]))).unwrap();
    is::<protocol::RequestPermissionRequest>(&choice);
    assert_eq!(choice["options"][1]["name"], "blue");
}

#[test]
fn the_first_answer_says_what_is_offered() {
    let capabilities = json!({ "clientCapabilities": {
        "session": { "notices": {} }, "elicitation": { "form": {} }, "auth": { "terminal": true } } });
    let client = Client::read(&capabilities);
    assert_eq!(
        client,
        Client {
            notices: true,
            forms: true,
            terminal_login: true,
            ..Client::default()
        }
    );
    for client in [
        client,
        Client::read(&json!({ "clientCapabilities": { "session": { "notices": null } } })),
    ] {
        let mut hello = hello(client);
        is::<protocol::InitializeResponse>(&hello);
        hello["agentInfo"]["version"] = json!("VERSION");
        insta::allow_duplicates!(
            insta::assert_snapshot!(hello["agentCapabilities"], @r#"{"loadSession":true,"mcpCapabilities":{"http":true,"sse":true},"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"sessionCapabilities":{"list":{},"resume":{},"close":{},"delete":{}}}"#)
        );
    }
    is::<protocol::SessionUpdate>(&plan(&[]));
}
