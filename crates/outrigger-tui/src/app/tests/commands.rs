//! Commands that start with `/`.

use crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::*;

/// Types a line and sends it; returns the effects without that of the stored prompt.
fn sends(app: &mut App, line: &str) -> Vec<Effect> {
    app.editor.set(line);
    let mut effects = app.submit();
    effects.retain(|it| !matches!(it, Effect::Remember(_)));
    effects
}

/// Answers a call.
fn replied(app: &mut App, effect: &Effect, value: Value) -> Vec<Effect> {
    let Effect::Call { then, .. } = effect else {
        panic!("{effect:?}");
    };
    app.update(Input::Reply(then.clone(), Ok(value)), 0)
}

#[track_caller]
fn is_call(effect: &Effect, wanted: &str, wanted_body: &Value) {
    let Effect::Call {
        method, path, body, ..
    } = effect
    else {
        panic!("{effect:?}");
    };
    assert_eq!(format!("{method} {path}"), wanted);
    assert_eq!(body.as_ref().unwrap_or(&Value::Null), wanted_body);
}

/// A command that there is not answers with the one that is meant, and comes back to be corrected.
#[test]
fn an_unknown_command_names_the_nearest() {
    for (line, message) in [
        ("/sesions", "there is no /sesions; did you mean /sessions?"),
        ("/exp now", "there is no /exp; did you mean /export?"),
        ("/nonsense", "there is no /nonsense; /commands lists all"),
        ("/share", "there is no /share: conversations stay on this"),
    ] {
        let mut app = talking(80, 12);
        let effects = sends(&mut app, line);
        is_call(&effects[0], "GET /command", &Value::Null);
        assert_eq!(replied(&mut app, &effects[0], json!([])), []);
        assert!(screen(&mut app).contains(message), "{}", screen(&mut app));
        assert_eq!(app.editor.text(), line);
    }
    // One that was contributed since runs.
    let mut app = talking(80, 12);
    let effects = sends(&mut app, "/deploy now");
    let commands = json!([{ "name": "deploy", "description": "" }]);
    let effects = replied(&mut app, &effects[0], commands);
    let [Effect::Call { path, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(path, "/outrigger/session/ses_1/turn");
}

#[test]
fn commands_of_opencode_with_their_aliases() {
    for (alias, name) in [
        ("clear", "new"),
        ("resume", "sessions"),
        ("continue", "sessions"),
        ("summarize", "compact"),
        ("quit", "exit"),
        ("q", "exit"),
    ] {
        let run = |name: &str| {
            let mut app = talking(80, 12);
            sends(&mut app, &format!("/{name}"))
        };
        assert_eq!(run(alias), run(name), "{alias}");
    }
}

#[test]
fn a_session_is_renamed_and_exported() {
    let mut app = talking(80, 12);
    assert_eq!(sends(&mut app, "/rename"), []);
    assert_eq!(app.editor.text(), "/rename T", "its title to be changed");
    let effects = sends(&mut app, "/rename Fix the parser");
    let body = json!({ "title": "Fix the parser" });
    is_call(&effects[0], "PATCH /session/ses_1", &body);
    let export = |file: &str| Effect::Export {
        session: "ses_1".to_owned(),
        file: file.to_owned(),
    };
    assert_eq!(sends(&mut app, "/export"), [export("session-ses_1.md")]);
    assert_eq!(sends(&mut app, "/export talk.md"), [export("talk.md")]);
    app.update(Input::Exported(Ok("/home/me/talk.md".to_owned())), 0);
    assert!(screen(&mut app).contains("wrote /home/me/talk.md"));
}

/// A key is typed without being shown, and the models are listed when it is stored.
#[test]
fn a_provider_is_connected_with_a_key() {
    let mut app = talking(70, 12);
    let effects = sends(&mut app, "/connect");
    let all = json!({ "connected": ["b"], "all": [
        { "id": "a", "name": "Alpha" }, { "id": "b", "name": "Beta" }] });
    replied(&mut app, &effects[0], all);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ Beta") && shown.contains("connected"),
        "{shown}"
    );
    type_in(&mut app, "alpha", 0);
    let effects = key(&mut app, KeyCode::Enter, 0);
    let methods = json!({ "a": [
        { "type": "oauth", "label": "Alpha Plus" }, { "type": "api", "label": "Key" }] });
    replied(&mut app, &effects[0], methods);
    key(&mut app, KeyCode::Enter, 0);
    app.update(Input::Paste("sk-very-secret".to_owned()), 0);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

        /  commands
        @  files
        !  a line for the shell
    ─ API key of a ───────────────────────────── enter saves · esc closes
    ❯ ••••••••••••••
      stored in your data folder; what you type is not shown
    ──────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build                                       $0.01 · /home/me/project
    ");
    let effects = key(&mut app, KeyCode::Enter, 0);
    let body = json!({ "type": "api", "key": "sk-very-secret" });
    is_call(&effects[0], "PUT /auth/a", &body);
    let effects = replied(&mut app, &effects[0], json!(true));
    is_call(&effects[0], "GET /config/providers", &Value::Null);
}

#[test]
fn a_login_that_needs_a_browser_is_a_command_for_a_shell() {
    let mut app = talking(70, 12);
    app.update(
        Input::Reply(
            Then::LoginMethods("a".to_owned()),
            Ok(json!({ "a": [{ "type": "oauth", "label": "Alpha Plus" }] })),
        ),
        0,
    );
    key(&mut app, KeyCode::Down, 0);
    key(&mut app, KeyCode::Enter, 0);
    let shown = screen(&mut app).replace("\n ", "");
    assert!(
        shown.contains("outrigger auth login a -m 'Alpha Plus'"),
        "{shown}"
    );
}

#[test]
fn mcp_servers_are_listed_and_switched() {
    let mut app = talking(70, 12);
    let effects = sends(&mut app, "/mcps");
    let servers = json!({ "docs": { "status": "connected" }, "mail": { "status": "needs_auth" },
        "old": { "status": "failed", "error": "no such file" } });
    replied(&mut app, &effects[0], servers.clone());
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

        /  commands
    ─ MCP servers ──────────── enter connects or disconnects · esc closes
    ❯
    ▸ docs                                                      connected
      mail                                                  needs a login
      old                                            failed: no such file
    ──────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build                                       $0.01 · /home/me/project
    ");
    let effects = key(&mut app, KeyCode::Enter, 0);
    is_call(&effects[0], "POST /mcp/docs/disconnect", &json!({}));
    let effects = replied(&mut app, &effects[0], json!(true));
    replied(&mut app, &effects[0], servers);
    key(&mut app, KeyCode::Down, 0);
    key(&mut app, KeyCode::Enter, 0);
    assert!(screen(&mut app).contains("outrigger mcp auth mail"));
}

#[test]
fn the_status_lists_what_is_in_use() {
    let mut app = talking(70, 14);
    app.model = ModelRef::parse("p/m");
    let effects = sends(&mut app, "/status");
    replied(
        &mut app,
        &effects[0],
        json!({ "docs": { "status": "connected" } }),
    );
    replied(
        &mut app,
        &effects[1],
        json!([{ "name": "rust", "status": "connected" }]),
    );
    let plugins =
        json!({ "plugins": [{ "id": "a", "stage": "active" }, { "id": "b", "stage": "failed" }] });
    replied(&mut app, &effects[2], plugins);
    insta::assert_snapshot!(screen(&mut app), @r"

    ─ Status ───────────────────────────────── enter chooses · esc closes
    ❯
    ▸ agent                                                         build
      model                                                             m
      session                                                           T
      session id                                                    ses_1
      folder                                             /home/me/project
      MCP server docs                                           connected
      language server rust                                      connected
      plugins                                     1 active, 1 not running
    ──────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build · m                                   $0.01 · /home/me/project
    ");
}

/// A prompt that no model can take leaves no empty session behind, and comes back.
#[test]
fn without_a_model_no_empty_session_is_left() {
    let mut app = talking(70, 14);
    let effects = sends(&mut app, "hello");
    let Effect::Call { then, .. } = &effects[0] else {
        panic!("{effects:?}");
    };
    let error = outrigger_client::ClientError::new("model.none", "no model is configured", None);
    let effects = app.update(Input::Reply(then.clone(), Err(error)), 0);
    is_call(&effects[0], "DELETE /session/ses_1", &Value::Null);
    let deleted = json!({ "sessionID": "ses_1", "info": app_session() });
    app.update(event("session.deleted", deleted), 0);
    assert!(screen(&mut app).contains("no model is configured"));
    assert_eq!(app.editor.text(), "hello");
}

/// What a list of todos is called has the right number.
#[test]
fn one_todo_is_one() {
    let mut app = talking(60, 14);
    assistant(&mut app, 2, false);
    let todos = json!([{ "content": "write it", "status": "pending" }]);
    let state = json!({ "status": "completed", "input": { "todos": todos }, "output": "[]", "title": "1 todos",
        "metadata": { "todos": todos }, "time": { "start": 1, "end": 2 } });
    tool(&mut app, 2, "call_1", "todowrite", state);
    let shown = screen(&mut app);
    assert!(shown.contains("todowrite 1 todo\n"), "{shown}");
}
