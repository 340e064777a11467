//! Lists: what tells their lines apart.

use crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::*;
use crate::state::picker::ListKind;

fn session(id: &str, title: &str, path: &str, updated: u64) -> Value {
    json!({ "id": id, "slug": "a-b-c", "projectID": "the project", "directory": "/home/me/project", "path": path,
        "title": title, "version": "1", "cost": 0.0, "time": { "created": 1, "updated": updated },
        "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } } })
}

/// Opens the list of sessions; returns the effects of its contents.
fn listed(app: &mut App, sessions: &[Value]) -> Vec<Effect> {
    control(app, 'x', 0);
    key(app, KeyCode::Char('l'), 0);
    app.update(Input::Reply(Then::Sessions, Ok(json!(sessions))), 0)
}

#[test]
fn sessions_with_one_title_are_told_apart_by_how_they_began() {
    let mut app = talking(76, 10);
    let minutes = |n: u64| 3 * 60 * 60 * 1000 - n * 60 * 1000;
    let sessions = [
        session("ses_a", "Fix the tests", "", minutes(90)),
        session("ses_b", "Fix the tests", "web", minutes(5)),
        session("ses_c", "Rename a crate", "", minutes(0)),
    ];
    let effects = listed(&mut app, &sessions);
    let [Effect::Call { path, then, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(
        path,
        "/outrigger/v1/conversation?limit=100&project=the%20project"
    );
    key(&mut app, KeyCode::Down, 0);
    let page = json!({ "next": null, "conversations": [
        { "id": "ses_a", "opening": "the suite hangs on CI" },
        { "id": "ses_b", "opening": "npm test fails" },
        { "id": "ses_c", "opening": "call it net" },
    ] });
    app.update(Input::Reply(then.clone(), Ok(page)), 0);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger
    ─ Sessions ─── enter chooses · ctrl+r renames · ctrl+d deletes · esc closes
    ❯
      Rename a crate                                                   just now
    ▸ Fix the tests                            5 min ago · web · npm test fails
      Fix the tests                             1 h ago · the suite hangs on CI
    ────────────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build                                             $0.01 · /home/me/project
    ");
    assert_eq!(app.picker.unwrap().chosen().unwrap().value, "ses_b");
}

/// On a narrow screen a key, or what tells two lines apart, is not the first thing to go.
#[test]
fn a_narrow_list_shows_the_keys() {
    let mut app = talking(40, 20);
    key(&mut app, KeyCode::F(1), 0);
    type_in(&mut app, "undo a change", 0);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ undo a change of the…") && shown.contains("  ctrl+-,…"),
        "{shown}"
    );
    assert!(
        shown.contains("─ Keys ") && shown.contains(" esc closes\n"),
        "{shown}"
    );
    for row in shown.lines() {
        assert!(row.chars().count() <= 40, "{row}");
    }
}

/// All commands can be reached with the arrow keys, eight are shown at once.
#[test]
fn completions_scroll() {
    let mut app = talking(60, 20);
    type_in(&mut app, "/", 0);
    assert!(screen(&mut app).contains("▸ /new"));
    assert!(!screen(&mut app).contains("/help"));
    key(&mut app, KeyCode::Up, 0);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ /exit") && shown.contains("/help") && !shown.contains("/new"),
        "{shown}"
    );
}

/// Nothing more is asked where every title is another.
#[test]
fn sessions_with_titles_of_their_own_need_no_more() {
    let mut app = talking(60, 12);
    let sessions = [
        session("ses_a", "One", "", 1),
        session("ses_b", "Two", "", 2),
    ];
    assert_eq!(listed(&mut app, &sessions), []);
}

/// A model has the name that the page shows, also where it answered before the names were known.
#[test]
fn a_model_has_its_name() {
    let mut app = talking(60, 24);
    a_turn(&mut app);
    app.model = ModelRef::parse("p/m");
    let shown = screen(&mut app);
    assert!(
        shown.contains("▣ build · m · 1.5 s") && shown.contains(" build · m  "),
        "{shown}"
    );
    let providers = json!({ "providers": [{ "id": "p", "models": { "m": { "id": "m", "name": "Sonnet 4.5" } } }] });
    app.update(Input::Reply(Then::Models, Ok(providers)), 0);
    let shown = screen(&mut app);
    assert!(shown.contains("▣ build · Sonnet 4.5 · 1.5 s"), "{shown}");
    assert!(shown.contains(" build · Sonnet 4.5  "), "{shown}");
    // Before a conversation has one, it is that of the configuration.
    app.model = None;
    app.update(Input::Reply(Then::Config, Ok(json!({ "model": "p/m" }))), 0);
    assert!(screen(&mut app).contains(" build · Sonnet 4.5  "));
    // Another provider's model of that id has another name.
    app.model = ModelRef::parse("q/m");
    assert!(screen(&mut app).contains(" build · m  "));
}

/// How long a turn runs is shown from its first second on, and not while something else is.
#[test]
fn a_turn_says_how_long_it_runs() {
    let mut app = talking(60, 14);
    let busy = event(
        "session.status",
        json!({ "sessionID": "ses_1", "status": { "type": "busy" } }),
    );
    app.update(busy, 5_000);
    assert!(screen(&mut app).contains("▸ working; esc interrupts"));
    app.update(Input::Tick, 17_400);
    assert!(screen(&mut app).contains("▸ working 12 s; esc interrupts"));
    app.update(Input::Tick, 70_000);
    assert!(screen(&mut app).contains("▸ working 1 min 5 s; esc interrupts"));
    app.update(permission("ls"), 71_000);
    assert_eq!(app.busy_for(), None, "nothing is drawn for it");
    app.update(
        event("session.idle", json!({ "sessionID": "ses_1" })),
        72_000,
    );
    app.update(
        event(
            "permission.replied",
            json!({ "sessionID": "ses_1", "requestID": "per_1", "reply": "once" }),
        ),
        72_000,
    );
    assert_eq!(app.busy_for(), None);
    assert!(!screen(&mut app).contains("working"));
}

/// A server that is gone is named until it is there again; then what happened meanwhile is fetched.
#[test]
fn a_lost_server_is_waited_for() {
    let mut app = talking(100, 14);
    let busy = json!({ "sessionID": "ses_1", "status": { "type": "busy" } });
    app.update(event("session.status", busy), 0);
    app.update(Input::Gone, 1);
    key(&mut app, KeyCode::Char('x'), 2);
    assert!(screen(&mut app).contains("lost the connection to the server"));
    assert!(!app.is_busy());
    let effects = app.update(Input::Back, 3);
    let paths: Vec<&str> = (effects.iter())
        .filter_map(|it| match it {
            Effect::Call { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        paths,
        [
            "/session/ses_1/message?limit=60",
            "/permission",
            "/question",
            "/session/status"
        ]
    );
    assert!(screen(&mut app).contains("connected to the server again"));
}

/// Who has several windows sees which of them waits.
#[test]
fn the_window_is_named_after_the_conversation() {
    let mut app = app(60, 14);
    assert_eq!(
        crate::view::window_title(&app),
        "/home/me/project · outrigger"
    );
    app.update(Input::Ready(Start::default()), 0);
    let made = session("ses_1", "Fix\u{1b}]2;x\u{7} it", "", 1);
    app.update(Input::Reply(Then::Made, Ok(made)), 0);
    assert_eq!(crate::view::window_title(&app), "Fix␛]2;x␇ it · outrigger");
    let busy = json!({ "sessionID": "ses_1", "status": { "type": "busy" } });
    app.update(event("session.status", busy), 0);
    assert!(crate::view::window_title(&app).starts_with("▸ Fix"));
    app.update(permission("ls"), 0);
    assert!(crate::view::window_title(&app).starts_with("? Fix"));
}

/// A chosen theme is kept for later runs.
#[test]
fn a_chosen_theme_is_kept() {
    let mut app = talking(60, 12);
    app.open_list(ListKind::Themes);
    key(&mut app, KeyCode::Down, 0);
    let effects = key(&mut app, KeyCode::Enter, 0);
    assert_eq!(effects, [Effect::KeepTheme("light")]);
    assert_eq!(app.theme.name(), "light");
}

/// Deleting a session takes the key twice; any other key between them keeps it.
#[test]
fn sessions_are_renamed_and_deleted_in_the_list() {
    let mut app = talking(76, 10);
    let sessions = [
        session("ses_a", "One", "", 1),
        session("ses_b", "Two", "", 2),
    ];
    listed(&mut app, &sessions);
    assert_eq!(control(&mut app, 'd', 0), []);
    insta::assert_snapshot!(screen(&mut app), @r"

     Outrigger

    ─ Sessions ─── enter chooses · ctrl+r renames · ctrl+d deletes · esc closes
    ❯
    ▸ Two                                               ctrl+d again deletes it
      One                                                               2 h ago
    ────────────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build                                             $0.01 · /home/me/project
    ");
    key(&mut app, KeyCode::Down, 0);
    assert_eq!(control(&mut app, 'd', 0), [], "that was for another line");
    let effects = control(&mut app, 'd', 0);
    let [
        Effect::Call {
            method, path, then, ..
        },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!((*method, path.as_str()), ("DELETE", "/session/ses_a"));
    app.update(Input::Reply(then.clone(), Ok(json!(true))), 0);
    assert!(!screen(&mut app).contains("One"));
    control(&mut app, 'r', 0);
    type_in(&mut app, " more", 0);
    let effects = key(&mut app, KeyCode::Enter, 0);
    let [
        Effect::Call {
            method,
            path,
            body,
            then,
        },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}");
    };
    assert_eq!((*method, path.as_str()), ("PATCH", "/session/ses_b"));
    assert_eq!(body, &Some(json!({ "title": "Two more" })));
    let effects = app.update(Input::Reply(then.clone(), Ok(json!({}))), 0);
    assert!(matches!(
        effects.as_slice(),
        [Effect::Call {
            then: Then::Sessions,
            ..
        }]
    ));
}
