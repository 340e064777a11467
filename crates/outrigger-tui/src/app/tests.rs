//! Screens as users see them.

mod cards;
mod commands;
mod history;
mod lists;
mod order;
mod questions;
mod status;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};

use super::*;
use crate::render::theme::Depth;
use crate::state::asking::GRACE;

pub(super) fn app(columns: u16, rows: u16) -> App {
    let options = Options {
        theme: Theme::new("dark", Depth::None),
        keys: BTreeMap::new(),
        vi: false,
        folder: "/home/me/project".to_owned(),
        is_local: true,
        agent: None,
        model: None,
        history: vec!["an earlier prompt".to_owned()],
        clock: || 3 * 60 * 60 * 1000,
    };
    App::new(options, (columns, rows))
}

/// Returns an app in a session.
pub(super) fn talking(columns: u16, rows: u16) -> App {
    let mut app = app(columns, rows);
    app.update(Input::Ready(Start::default()), 0);
    let session = json!({ "id": "ses_1", "slug": "a-b-c", "projectID": "p", "directory": "/home/me/project", "path": "",
        "title": "T", "version": "1", "cost": 0.0123, "time": { "created": 1, "updated": 1 },
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } } });
    app.update(Input::Reply(Then::Made, Ok(session)), 0);
    app
}

pub(super) fn event(kind: &str, properties: Value) -> Input {
    let event = json!({ "id": "evt_1", "type": kind, "properties": properties });
    Input::Bus(Arc::new(serde_json::from_value(event).unwrap()))
}

pub(super) fn user(app: &mut App, n: usize, text: &str) {
    let info = json!({ "role": "user", "id": format!("msg_{n:05}"), "sessionID": "ses_1", "time": { "created": 1 },
        "agent": "build", "model": { "providerID": "p", "modelID": "m" } });
    app.update(
        event(
            "message.updated",
            json!({ "sessionID": "ses_1", "info": info }),
        ),
        0,
    );
    part(app, n, json!({ "type": "text", "text": text }));
}

pub(super) fn assistant(app: &mut App, n: usize, done: bool) {
    let mut info = json!({ "role": "assistant", "id": format!("msg_{n:05}"), "parentID": "msg_0", "sessionID": "ses_1", "mode": "build",
        "agent": "build", "path": { "cwd": "/", "root": "/" }, "cost": 0, "modelID": "m", "providerID": "p",
        "tokens": { "input": 900, "output": 100, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "time": { "created": 1000 } });
    if done {
        info["time"]["completed"] = json!(2500);
        info["finish"] = json!("stop");
    }
    app.update(
        event(
            "message.updated",
            json!({ "sessionID": "ses_1", "info": info }),
        ),
        0,
    );
}

pub(super) fn part(app: &mut App, n: usize, mut part: Value) {
    let id = part
        .get("id")
        .cloned()
        .unwrap_or_else(|| json!(format!("prt_{n:05}_{}", part["type"])));
    part["id"] = id;
    part["sessionID"] = json!("ses_1");
    part["messageID"] = json!(format!("msg_{n:05}"));
    app.update(
        event(
            "message.part.updated",
            json!({ "sessionID": "ses_1", "part": part, "time": 1 }),
        ),
        0,
    );
}

pub(super) fn tool(app: &mut App, n: usize, id: &str, tool: &str, state: Value) {
    part(
        app,
        n,
        json!({ "id": id, "type": "tool", "callID": id, "tool": tool, "state": state }),
    );
}

pub(super) fn edit(path: &str, before: &str, after: &str) -> Value {
    json!({ "status": "completed", "input": { "filePath": path, "oldString": before, "newString": after }, "output": "", "title": path,
        "metadata": { "filediff": { "before": before, "after": after } }, "time": { "start": 1, "end": 2 } })
}

pub(super) fn bash(command: &str, stdout: &str, exit: i64) -> Value {
    json!({ "status": "completed", "input": { "command": command }, "output": stdout, "title": command,
        "metadata": { "output": stdout, "exit": exit }, "time": { "start": 1, "end": 2301 } })
}

pub(super) fn permission(command: &str) -> Input {
    let call = json!({ "tool": "bash", "input": { "command": command } });
    event(
        "permission.asked",
        json!({ "id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": [command],
        "always": ["touch *"], "metadata": { "outriggerCall": call } }),
    )
}

pub(super) fn buffer(app: &mut App) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.size.0, app.size.1));
    crate::view::draw(app, &mut buffer);
    buffer
}

pub(super) fn screen(app: &mut App) -> String {
    let buffer = buffer(app);
    buffer
        .content
        .chunks(usize::from(app.size.0).max(1))
        .map(|row| {
            let text: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
            format!("{}\n", text.trim_end())
        })
        .collect()
}

pub(super) fn key(app: &mut App, code: KeyCode, now: u64) -> Vec<Effect> {
    app.update(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), now)
}

pub(super) fn control(app: &mut App, c: char, now: u64) -> Vec<Effect> {
    app.update(
        Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)),
        now,
    )
}

pub(super) fn type_in(app: &mut App, text: &str, now: u64) {
    for c in text.chars() {
        key(app, KeyCode::Char(c), now);
    }
}

pub(super) fn a_turn(app: &mut App) {
    user(app, 1, "fix it");
    assistant(app, 2, false);
    part(
        app,
        2,
        json!({ "type": "reasoning", "text": "let me see what this is", "time": { "start": 1, "end": 2 } }),
    );
    part(
        app,
        2,
        json!({ "type": "text", "text": "I **look** at it:\n\n```rust\nfn main() {}\n```", "time": { "start": 1, "end": 2 } }),
    );
    tool(
        app,
        2,
        "call_1",
        "edit",
        edit("src/a.rs", "one\ntwo\n", "one\n2\n"),
    );
    tool(
        app,
        2,
        "call_2",
        "bash",
        bash("cargo test", "\u{1b}[32mok\u{1b}[0m\u{1b}[2J\n", 1),
    );
    assistant(app, 2, true);
}

#[test]
fn the_first_frame_needs_no_agent() {
    let mut app = app(50, 14);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

        /  commands
        @  files
        !  a line for the shell
       f1  the keys




    ─ starting ───────────────────────────────────────
    ❯ what is to be done?
     build                           /home/me/project
    ");
}

#[test]
fn a_turn_as_it_is_shown() {
    let mut app = talking(60, 24);
    a_turn(&mut app);
    insta::assert_snapshot!(screen(&mut app), @r"




     ┃ fix it

     ∴ thought, 6 words

     I look at it:

     │ fn main() {}

     ✓ edit src/a.rs  +1 -1
          1   one
          2 - two
          2 + 2
     ✗ bash cargo test  2.3 s
       ok␛[2J
       exit 1

     ▣ build · m · 1.5 s
    ────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build               1.0k tokens · $0.01 · /home/me/project
    ");
    let effects = control(&mut app, 'o', 0);
    assert_eq!(effects, []);
    assert!(app.details);
}

#[test]
fn a_narrow_terminal_shows_all_of_it() {
    let mut app = talking(40, 20);
    a_turn(&mut app);
    app.update(permission("touch a && echo \u{1b}[2J日本語"), 0);
    let shown = screen(&mut app);
    for part in [
        "? run a command?",
        "│ touch a",
        "␛[2J日 本 語",
        "[y]es  [n]o  [a]lways",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'));
}

/// Typing when a question appears does not answer it with the next letter.
#[test]
fn what_is_typed_when_a_question_appears_goes_to_the_prompt() {
    let mut app = talking(60, 20);
    type_in(&mut app, "say ", 1000);
    app.update(permission("rm -rf ."), 1010);
    type_in(&mut app, "y", 1100);
    assert_eq!(app.editor.text(), "say y");
    assert_eq!(key(&mut app, KeyCode::Char('y'), 1100 + GRACE / 2), []);
    let effects = key(&mut app, KeyCode::Char('y'), 1100 + 2 * GRACE);
    let [Effect::Call { path, body, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(path, "/permission/per_1/reply");
    assert_eq!(body, &Some(json!({ "reply": "once" })));
    assert!(app.asking.shown().is_none());
}

#[test]
fn a_prompt_before_the_agent_is_there_is_sent_when_it_is() {
    let mut app = app(60, 20);
    type_in(&mut app, "hi", 0);
    assert!(matches!(
        key(&mut app, KeyCode::Enter, 0).as_slice(),
        [Effect::Remember(_)]
    ));
    let start = Start {
        prompt: Some("and this".to_owned()),
        ..Start::default()
    };
    let effects = app.update(Input::Ready(start), 0);
    let made = effects
        .iter()
        .filter(|it| matches!(it, Effect::Call { path, .. } if path == "/session"));
    assert_eq!(made.count(), 1, "one session for both");
    assert!(effects.iter().any(|it| matches!(
        it,
        Effect::Call {
            then: Then::Made,
            ..
        }
    )));
    let effects = app.update(Input::Reply(Then::Made, Ok(json!(app_session()))), 0);
    let [
        Effect::Call {
            path,
            body: Some(body),
            ..
        },
        Effect::Call { .. },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!(path, "/outrigger/session/ses_9/turn");
    assert_eq!(body["prompt"]["parts"][0]["text"], "hi");
    assert!(app.is_busy());
    assert!(
        matches!(key(&mut app, KeyCode::Esc, 0).as_slice(), [Effect::Call { path, .. }] if path.ends_with("/cancel"))
    );
}

pub(super) fn app_session() -> Value {
    json!({ "id": "ses_9", "slug": "a", "projectID": "p", "directory": "/", "path": "", "title": "T", "version": "1", "cost": 0.0,
        "time": { "created": 1, "updated": 1 }, "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } } })
}

#[test]
fn keys_of_a_prompt_and_of_leaving() {
    let mut app = talking(60, 20);
    key(&mut app, KeyCode::Up, 0);
    assert_eq!(app.editor.text(), "an earlier prompt");
    key(&mut app, KeyCode::Down, 0);
    assert_eq!(app.editor.text(), "");
    type_in(&mut app, "x", 0);
    assert_eq!(control(&mut app, 'c', 0), [], "the first one clears");
    assert_eq!(control(&mut app, 'c', 10), [], "this one says so");
    assert_eq!(control(&mut app, 'c', 20), [Effect::Quit]);
    assert_eq!(control(&mut app, 'd', 0), [Effect::Quit]);
    control(&mut app, 'x', 0);
    assert_eq!(key(&mut app, KeyCode::Char('q'), 0), [Effect::Quit]);
}

pub(super) fn many(app: &mut App, count: usize) {
    for n in 1..=count {
        user(app, 2 * n, &format!("prompt {n}"));
        assistant(app, 2 * n + 1, false);
        part(
            app,
            2 * n + 1,
            json!({ "type": "text", "text": format!("answer {n}"), "time": { "start": 1, "end": 2 } }),
        );
    }
}

/// A key in a long conversation lays out what is visible; what is far away is dropped.
#[test]
fn a_long_conversation_costs_what_is_seen_of_it() {
    let mut app = talking(80, 24);
    many(&mut app, 1500);
    let laid_out = |app: &App| {
        app.conversation
            .blocks()
            .iter()
            .filter(|it| it.cache.is_laid_out())
            .count()
    };
    screen(&mut app);
    assert!(laid_out(&app) < 40, "{}", laid_out(&app));
    type_in(&mut app, "x", 0);
    assert!(screen(&mut app).contains("answer 1500"));
    assert!(laid_out(&app) < 40);
    for _ in 0..200 {
        app.scroll_by(-20);
        screen(&mut app);
    }
    assert!(laid_out(&app) < 600, "{}", laid_out(&app));
}

/// The text being read stays in place when more arrives, when a question appears, and when the terminal is
/// resized.
#[test]
fn the_place_does_not_jump() {
    let mut app = talking(80, 24);
    many(&mut app, 100);
    app.scroll_by(-100);
    let top = |app: &mut App| screen(app).lines().next().unwrap_or_default().to_owned();
    let before = top(&mut app);
    assert!(
        before.contains("answer") || before.contains("prompt"),
        "{before}"
    );
    many(&mut app, 120);
    assert_eq!(top(&mut app), before);
    app.update(permission("ls"), 0);
    assert_eq!(top(&mut app), before);
    app.update(Input::Resize(50, 30), 0);
    assert_eq!(top(&mut app), before);
    app.scroll.to_end();
    assert!(screen(&mut app).contains("answer 120"));
}

#[test]
fn a_stream_grows_and_ends_as_it_was_stored() {
    let mut app = talking(60, 20);
    user(&mut app, 1, "say it");
    assistant(&mut app, 2, false);
    part(
        &mut app,
        2,
        json!({ "id": "prt_x", "type": "text", "text": "", "time": { "start": 1 } }),
    );
    for word in ["one ", "**two", "** ", "three\n\n", "- four"] {
        let delta = json!({ "sessionID": "ses_1", "messageID": "msg_00002", "partID": "prt_x", "field": "text", "delta": word });
        app.update(event("message.part.delta", delta), 0);
        screen(&mut app);
    }
    let streamed = screen(&mut app);
    part(
        &mut app,
        2,
        json!({ "id": "prt_x", "type": "text", "text": "one **two** three\n\n- four", "time": { "start": 1, "end": 2 } }),
    );
    assert_eq!(screen(&mut app), streamed);
    assert!(streamed.contains("one two three"));
}
