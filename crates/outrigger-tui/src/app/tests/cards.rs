//! Cards of tool calls.

use serde_json::{Value, json};

use super::*;

fn done(tool: &str, input: Value, output: &str, metadata: Value) -> Value {
    json!({ "status": "completed", "input": input, "output": output, "title": format!("a title of {tool}"), "metadata": metadata,
        "time": { "start": 1, "end": 2 } })
}

/// Shows one call.
fn card(columns: u16, name: &str, state: Value) -> App {
    let mut app = talking(columns, 24);
    user(&mut app, 1, "go");
    assistant(&mut app, 2, false);
    tool(&mut app, 2, "call_1", name, state);
    app
}

/// Returns the rows of the card without those around it.
fn rows(app: &mut App) -> String {
    let shown = screen(app);
    shown
        .lines()
        .skip_while(|it| !it.contains('✓'))
        .take_while(|it| !it.starts_with('─'))
        .map(|it| format!("{it}\n"))
        .collect()
}

#[test]
fn todos_are_a_list() {
    let todos = json!([
        { "content": "Read the limiter", "status": "completed" },
        { "content": "Refill by elapsed time", "status": "in_progress" },
        { "content": "Run the tests", "status": "pending" },
    ]);
    let state = done(
        "todowrite",
        json!({ "todos": todos }),
        "[]",
        json!({ "todos": todos }),
    );
    let mut app = card(60, "todowrite", state);
    insta::assert_snapshot!(rows(&mut app), @r"
     ✓ todowrite a title of todowrite
       [✓] Read the limiter
       [•] Refill by elapsed time
       [ ] Run the tests
    ");
}

#[test]
fn a_patch_of_several_files_shows_each_change() {
    let file = |name: &str| {
        json!({ "type": "update", "relativePath": name, "filePath": format!("/home/me/project/{name}"),
        "patch": format!("--- {name}\n+++ {name}\n@@ -1,1 +1,1 @@\n-old\n+new\n") })
    };
    let files = json!([file("src/a.rs"), file("src/b.rs")]);
    let state = done(
        "apply_patch",
        json!({ "patchText": "x" }),
        "",
        json!({ "files": files }),
    );
    let mut app = card(60, "apply_patch", state);
    insta::assert_snapshot!(rows(&mut app), @r"
     ✓ apply_patch a title of apply_patch
       src/a.rs  +1 -1
          1 - old
          1 + new
       src/b.rs  +1 -1
          1 - old
          1 + new
    ");
}

#[test]
fn answers_stand_below_their_questions() {
    let input = json!({ "questions": [{ "question": "Which store?", "header": "Store", "options": [] }, { "question": "When?", "header": "h", "options": [] }] });
    let state = done(
        "question",
        input,
        "",
        json!({ "answers": [["Redis", "Memory"], []] }),
    );
    let mut app = card(60, "question", state);
    insta::assert_snapshot!(rows(&mut app), @r"
     ✓ question a title of question
       Which store?
       ❯ Redis, Memory
       When?
       ❯ no answer
    ");
}

/// A command that failed says so at its beginning, and one that was aborted keeps what it printed.
#[test]
fn a_failed_command_is_marked() {
    let mut app = card(60, "bash", bash("ls x", "ls: no x\n", 2));
    assert!(screen(&mut app).contains("✗ bash ls x"));
    let aborted = json!({ "status": "error", "input": { "command": "make" }, "error": "Tool execution aborted",
        "metadata": { "output": "step 1\nstep 2\n" }, "time": { "start": 1, "end": 2 } });
    let mut app = card(60, "bash", aborted);
    let shown = screen(&mut app);
    assert!(
        shown.contains("✗ bash make\n   step 1\n   step 2\n   Tool execution aborted\n"),
        "{shown}"
    );
}

/// A search is about what is searched for, and a task about who does it.
#[test]
fn a_card_is_about_what_matters() {
    let input = json!({ "pattern": "setInterval", "path": "/home/me/project" });
    let mut app = card(60, "grep", done("grep", input, "", json!({})));
    assert!(screen(&mut app).contains("✓ grep setInterval\n"));
    let input =
        json!({ "description": "look for timers", "prompt": "x", "subagent_type": "general" });
    let mut app = card(60, "task", done("task", input, "", json!({})));
    assert!(screen(&mut app).contains("✓ task look for timers (@general)\n"));
}

/// What the program says comes after the end of the last answer.
#[test]
fn a_note_comes_last() {
    let mut app = talking(60, 24);
    a_turn(&mut app);
    app.conversation
        .note("3 messages are taken back; ctrl+x r brings them back");
    let shown = screen(&mut app);
    let (end, note) = (
        shown.find("▣ build").unwrap(),
        shown.find("~ 3 messages").unwrap(),
    );
    assert!(end < note, "{shown}");
    assert_eq!(app.keymap.key("messages_redo"), "ctrl+x r");
    assert_eq!(app.keymap.keys("history_previous"), "up");
    assert_eq!(app.keymap.keys("session_parent"), "ctrl+x up, ctrl+x left");
}

/// The time at the end of an answer is that of the turn, with all its steps.
#[test]
fn the_end_of_an_answer_has_the_time_of_the_turn() {
    let mut app = talking(60, 24);
    user(&mut app, 0, "go");
    let info = |id: &str, from: u64, until: u64, finish: &str| {
        json!({ "role": "assistant", "id": id, "parentID": "msg_00000", "sessionID": "ses_1", "mode": "build", "agent": "build",
        "path": { "cwd": "/", "root": "/" }, "cost": 0, "modelID": "m", "providerID": "p", "finish": finish,
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "time": { "created": from, "completed": until } })
    };
    for info in [
        info("msg_00001", 1, 9_000, "tool-calls"),
        info("msg_00002", 9_000, 12_301, "stop"),
    ] {
        app.update(
            event(
                "message.updated",
                json!({ "sessionID": "ses_1", "info": info }),
            ),
            0,
        );
    }
    assert!(screen(&mut app).contains("▣ build · m · 12.3 s"));
}

/// An interrupted turn says so once.
#[test]
fn an_interrupted_turn_says_so_once() {
    let mut app = talking(60, 24);
    let error =
        json!({ "name": "MessageAbortedError", "data": { "message": "The turn was cancelled." } });
    let info = json!({ "role": "assistant", "id": "msg_00002", "parentID": "msg_0", "sessionID": "ses_1", "mode": "build", "agent": "build",
        "path": { "cwd": "/", "root": "/" }, "cost": 0, "modelID": "m", "providerID": "p", "error": error,
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "time": { "created": 1000, "completed": 2000 } });
    app.update(
        event(
            "session.error",
            json!({ "sessionID": "ses_1", "error": error }),
        ),
        0,
    );
    app.update(
        event(
            "message.updated",
            json!({ "sessionID": "ses_1", "info": info }),
        ),
        0,
    );
    let shown = screen(&mut app);
    assert!(
        shown.contains("~ interrupted") && !shown.contains("cancelled"),
        "{shown}"
    );
}

/// An error of a message comes with two events, in any order, and is shown once.
#[test]
fn an_error_is_shown_once() {
    let error = json!({ "name": "APIError", "data": { "message": "no such key" } });
    let info = json!({ "role": "assistant", "id": "msg_00002", "parentID": "msg_0", "sessionID": "ses_1", "mode": "build", "agent": "build",
        "path": { "cwd": "/", "root": "/" }, "cost": 0, "modelID": "m", "providerID": "p", "error": error,
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "time": { "created": 1000, "completed": 2000 } });
    let of_session = || {
        event(
            "session.error",
            json!({ "sessionID": "ses_1", "error": error }),
        )
    };
    let of_message = || {
        event(
            "message.updated",
            json!({ "sessionID": "ses_1", "info": info }),
        )
    };
    for events in [[of_session(), of_message()], [of_message(), of_session()]] {
        let mut app = talking(60, 24);
        user(&mut app, 1, "go");
        for event in events {
            app.update(event, 0);
        }
        assert_eq!(screen(&mut app).matches("no such key").count(), 1);
    }
}

/// What a tool of a server or a plugin returned is shown; of tools whose title says enough, when the card is open.
#[test]
fn what_a_tool_returned_can_be_read() {
    let printed: String = (1..=30).map(|n| format!("row {n}\n")).collect();
    let mut state = done(
        "files_list",
        json!({ "folder": "docs", "depth": 2, "deep": {} }),
        &printed,
        json!({}),
    );
    state["title"] = json!("");
    let mut app = card(60, "files_list", state);
    let shown = rows(&mut app);
    assert!(
        shown.starts_with(" ✓ files_list folder: docs, depth: 2\n   row 1\n"),
        "{shown}"
    );
    assert!(
        shown.contains("⋮ 19 more lines; ctrl+o shows all\n   row 27\n"),
        "{shown}"
    );
    let input = json!({ "filePath": "/home/me/project/src/a.rs" });
    let mut app = card(
        60,
        "read",
        done("read", input, "1: fn main() {}", json!({})),
    );
    assert_eq!(rows(&mut app).trim_end(), " ✓ read src/a.rs");
    control(&mut app, 'o', 0);
    assert_eq!(
        rows(&mut app).trim_end(),
        " ✓ read src/a.rs\n   1: fn main() {}"
    );
}
