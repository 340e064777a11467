//! Long conversations: what is in memory, the cost of a key, and search results.

use crossterm::event::KeyCode;
use outrigger_client::ClientError;
use ratatui::layout::Position;
use serde_json::{Value, json};

use super::*;
use crate::runtime::paint::Painter;
use crate::state::layout::tests::LAID_OUT;

fn stored(n: usize) -> Value {
    let info = json!({ "role": "user", "id": format!("msg_{n:05}"), "sessionID": "ses_1", "time": { "created": 1 }, "agent": "build",
        "model": { "providerID": "p", "modelID": "m" } });
    let part = json!({ "id": format!("prt_{n:05}"), "sessionID": "ses_1", "messageID": format!("msg_{n:05}"), "type": "text",
        "text": format!("stored {n}") });
    json!({ "info": info, "parts": [part] })
}

/// Answers with the pages of a store with this many messages.
fn answer(app: &mut App, effects: Vec<Effect>, count: usize) {
    for effect in effects {
        let Effect::Call { path, then, .. } = effect else {
            continue;
        };
        if !matches!(then, Then::Messages(_) | Then::Older(_)) {
            continue;
        }
        let (_, query) = path.split_once('?').unwrap();
        let field = |name: &str| query.split('&').find_map(|it| it.strip_prefix(name));
        let limit: usize = field("limit=").unwrap().parse().unwrap();
        let before = field("before=").map_or(count + 1, |cursor| {
            use base64::Engine as _;
            let text = base64::engine::general_purpose::URL_SAFE_NO_PAD
                .decode(cursor)
                .unwrap();
            let cursor: Value = serde_json::from_slice(&text).unwrap();
            cursor["id"].as_str().unwrap()[4..].parse().unwrap()
        });
        let page: Vec<Value> = (before.saturating_sub(limit).max(1)..before)
            .map(stored)
            .collect();
        app.update(Input::Reply(then, Ok(json!(page))), 0);
    }
}

/// Returns the number of rows laid out for an action.
fn rows_for(app: &mut App, what: impl FnOnce(&mut App)) -> usize {
    let before = LAID_OUT.get();
    what(app);
    screen(app);
    LAID_OUT.get() - before
}

/// 10,000 messages: a key lays out nothing, a page key one page, and memory is bounded however far the user scrolls.
#[test]
fn ten_thousand_messages_cost_what_is_seen_of_them() {
    let mut app = talking(80, 24);
    let effects = app.reload();
    answer(&mut app, effects, 10_000);
    assert!(screen(&mut app).contains("stored 10000"));
    assert_eq!(app.conversation.messages(), PAGE);
    assert_eq!(rows_for(&mut app, |app| type_in(app, "x", 0)), 0);
    let mut most = 0;
    for _ in 0..1200 {
        let rows = rows_for(&mut app, |app| {
            let effects = key(app, KeyCode::PageUp, 0);
            answer(app, effects, 10_000);
        });
        assert!(rows < 200, "{rows} rows for a page");
        most = most.max(app.conversation.blocks().len());
    }
    assert!(
        screen(&mut app).contains("stored 1\n"),
        "{}",
        screen(&mut app)
    );
    assert!(most <= MAX_BLOCKS + PAGE, "{most} blocks in memory");
    assert!(app.has_newer);
    // New messages are at the end, which is fetched when it comes into view.
    user(&mut app, 10_001, "a new one");
    assert!(screen(&mut app).contains("stored 1\n"));
    control(&mut app, 'c', 0);
    let effects = key(&mut app, KeyCode::End, 0);
    answer(&mut app, effects, 10_001);
    assert!(screen(&mut app).contains("stored 10001"));
    assert!(!app.has_newer && app.conversation.messages() <= PAGE + 1);
}

/// What was said while messages are fetched is not lost when the answer is older than that.
#[test]
fn a_late_answer_takes_nothing_back() {
    let mut app = talking(80, 24);
    let effects = app.reload();
    user(&mut app, 11, "go on");
    answer(&mut app, effects, 10);
    let shown = screen(&mut app);
    assert!(
        shown.contains("stored 10") && shown.contains("┃ go on"),
        "{shown}"
    );
    assert!(app.since_reload.0 == 0 && app.since_reload.1.is_empty());
}

/// A new page does not move what is on the screen.
#[test]
fn an_older_page_does_not_move_the_screen() {
    let mut app = talking(80, 24);
    let effects = app.reload();
    answer(&mut app, effects, 500);
    let mut asked = Vec::new();
    while asked.is_empty() {
        asked = key(&mut app, KeyCode::PageUp, 0);
    }
    let before = screen(&mut app);
    answer(&mut app, asked, 500);
    assert_eq!(screen(&mut app), before);
    assert_eq!(app.conversation.messages(), 2 * PAGE);
}

/// A streamed word costs its cells, and a full screen once per row at most.
#[test]
fn bytes_of_a_streamed_word() {
    let mut app = talking(100, 30);
    a_turn(&mut app);
    assistant(&mut app, 3, false);
    part(
        &mut app,
        3,
        json!({ "id": "prt_x", "type": "text", "text": "", "time": { "start": 1 } }),
    );
    let mut painter = Painter::default();
    painter.frame(buffer(&mut app), Some(Position::new(2, 28)));
    let (mut sizes, mut frames) = (Vec::new(), String::new());
    for n in 0..1000 {
        let delta = json!({ "sessionID": "ses_1", "messageID": "msg_00003", "partID": "prt_x", "field": "text", "delta": format!("word{n} ") });
        app.update(event("message.part.delta", delta), 0);
        let frame = painter.frame(buffer(&mut app), Some(Position::new(2, 28)));
        sizes.push(frame.len());
        frames.push_str(&frame);
    }
    sizes.sort_unstable();
    let (median, all) = (sizes[500], sizes.iter().sum::<usize>());
    assert!(median < 60, "{median} bytes for a word");
    assert!(all < 1000 * 400, "{all} bytes for 1000 words");
    assert!(!frames.contains("\u{1b}[2J"), "the screen is never cleared");
    assert_eq!(
        frames.matches("\u{1b}[?2026h").count(),
        frames.matches("\u{1b}[?2026l").count()
    );
}

#[test]
fn a_search_goes_to_the_row() {
    let mut app = talking(60, 14);
    user(&mut app, 1, "where is it?");
    assistant(&mut app, 2, true);
    let text: String = (0..60).map(|n| format!("row {n}\n\n")).collect();
    part(
        &mut app,
        2,
        json!({ "type": "text", "text": text, "time": { "start": 1, "end": 2 } }),
    );
    control(&mut app, 'x', 0);
    key(&mut app, KeyCode::Char('/'), 0);
    type_in(&mut app, "row 17", 0);
    insta::assert_snapshot!(screen(&mut app), @r"
     row 55

     row 56

     row 57

     row 58

    ─ Search ───── enter chooses · tab: everything · esc closes
    ❯ row 17
    ▸ row 17
    ────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build               1.0k tokens · $0.01 · /home/me/project
    ");
    key(&mut app, KeyCode::Enter, 0);
    assert!(
        screen(&mut app).starts_with(" row 17\n"),
        "{}",
        screen(&mut app)
    );
    assert_eq!(reversed(&mut app), "row 17");
    key(&mut app, KeyCode::Esc, 0);
    assert_eq!(reversed(&mut app), "", "until the end is shown");
}

/// Returns what is shown reversed.
fn reversed(app: &mut App) -> String {
    let cells = buffer(app).content.into_iter();
    cells
        .filter(|it| it.modifier.contains(ratatui::style::Modifier::REVERSED))
        .map(|it| it.symbol().to_owned())
        .collect()
}

/// The screen is full wherever a search goes and however the window grows, as long as there is enough to fill it.
#[test]
fn no_row_is_left_blank() {
    let mut app = talking(60, 14);
    user(&mut app, 1, "where is it?");
    assistant(&mut app, 2, true);
    let text: String = (0..60).map(|n| format!("- row {n}\n")).collect();
    part(
        &mut app,
        2,
        json!({ "type": "text", "text": text, "time": { "start": 1, "end": 2 } }),
    );
    let is_full = |app: &mut App| {
        let shown = screen(app);
        assert!(shown.starts_with(" • row"), "{shown}");
    };
    app.open_list(crate::state::picker::ListKind::Search);
    type_in(&mut app, "row 57", 0);
    key(&mut app, KeyCode::Enter, 0);
    is_full(&mut app);
    assert_eq!(reversed(&mut app), "row 57");
    app.scroll_by(-12);
    is_full(&mut app);
    app.update(Input::Resize(60, 40), 0);
    is_full(&mut app);
    // What is not in memory is fetched for a window that has grown.
    app.has_older = true;
    let effects = app.update(Input::Resize(60, 100), 0);
    assert!(
        matches!(
            effects.as_slice(),
            [Effect::Call {
                then: Then::Older(_),
                ..
            }]
        ),
        "{effects:?}"
    );
}

#[test]
fn a_subagents_conversation_and_back() {
    let mut app = talking(80, 14);
    control(&mut app, 'x', 0);
    let effects = key(&mut app, KeyCode::Down, 0);
    assert!(
        matches!(effects.as_slice(), [Effect::Call { path, then: Then::Children, .. }] if path == "/session/ses_1/children")
    );
    let mut child = app_session();
    child["parentID"] = json!("ses_1");
    child["title"] = json!("look for callers");
    app.update(Input::Reply(Then::Children, Ok(json!([child]))), 0);
    let effects = key(&mut app, KeyCode::Enter, 0);
    assert!(
        matches!(effects.as_slice(), [Effect::Call { path, then: Then::Enter, .. }] if path == "/session/ses_9")
    );
    let effects = app.update(Input::Reply(Then::Enter, Ok(child)), 0);
    answer(&mut app, effects.clone(), 0);
    app.update(
        Input::Reply(Then::Status, Ok(json!({ "ses_9": { "type": "busy" } }))),
        0,
    );
    assert!(app.is_busy());
    assert!(
        screen(&mut app).contains("subagent: look for callers (ctrl+x up goes back)"),
        "{}",
        screen(&mut app)
    );
    control(&mut app, 'x', 0);
    let effects = key(&mut app, KeyCode::Up, 0);
    assert!(
        matches!(effects.as_slice(), [Effect::Call { path, then: Then::Enter, .. }] if path == "/session/ses_1")
    );
}

/// A click opens the card that it hits, and nothing else.
#[test]
fn a_click_unfolds_a_card() {
    let mut app = talking(60, 40);
    user(&mut app, 1, "list");
    assistant(&mut app, 2, false);
    let long: String = (0..30).map(|n| format!("out {n}\n")).collect();
    tool(&mut app, 2, "call_1", "bash", bash("ls", &long, 0));
    tool(&mut app, 2, "call_2", "bash", bash("ls again", &long, 0));
    let folded = screen(&mut app);
    assert_eq!(folded.matches("more lines").count(), 2);
    let row = folded
        .lines()
        .position(|it| it.contains("ls again"))
        .unwrap();
    app.update(Input::Click(5, u16::try_from(row).unwrap()), 0);
    assert_eq!(screen(&mut app).matches("more lines").count(), 1);
    assert!(screen(&mut app).contains("out 15"));
    assert_eq!(
        app.conversation
            .blocks()
            .iter()
            .filter(|it| it.is_toggled)
            .count(),
        1
    );
}

/// `tab` in a search searches all conversations; selecting a result shows the message, however far back it is.
#[test]
fn a_search_of_all_conversations_goes_to_a_message_far_back() {
    let mut app = talking(70, 14);
    control(&mut app, 'x', 0);
    key(&mut app, KeyCode::Char('/'), 0);
    type_in(&mut app, "stored 4242", 0);
    let effects = key(&mut app, KeyCode::Tab, 0);
    let [Effect::Call { path, then, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(path, "/outrigger/v1/search?limit=100&q=stored%204242");
    let hit = json!({ "conversation": "ses_1", "title": "A long one", "directory": "/p", "message": "msg_04242", "key": "msg_04242/prt_04242",
        "kind": "text", "before": "", "found": "stored", "after": " 4242" });
    let page = json!({ "hits": [hit], "next": "77" });
    app.update(Input::Reply(then.clone(), Ok(page)), 0);
    insta::assert_snapshot!(screen(&mut app).lines().skip(8).collect::<Vec<_>>().join("\n"), @r"
    ❯
    ▸ stored 4242                                              A long one
      look further back
    ──────────────────────────────────────────────────────────────────────
    ❯ what is to be done?
     build                                       $0.01 · /home/me/project
    ");
    let effects = key(&mut app, KeyCode::Enter, 0);
    let [Effect::Call { path, then, .. }] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((path.as_str(), then), ("/session/ses_1", &Then::Enter));
    let session = serde_json::to_value(app.session.as_ref().unwrap()).unwrap();
    let effects = app.update(Input::Reply(Then::Enter, Ok(session)), 0);
    let asked = effects.iter().find_map(|effect| match effect {
        Effect::Call { path, then, .. } if matches!(then, Then::Around(..)) => Some((path, then)),
        _ => None,
    });
    let (path, then) = asked.unwrap();
    assert!(path.contains("&before="), "{path}");
    let messages: Vec<Value> = (4143..=4242).map(stored).collect();
    app.update(Input::Reply(then.clone(), Ok(json!(messages))), 0);
    assert!(
        screen(&mut app).contains("stored 4242"),
        "{}",
        screen(&mut app)
    );
    assert!(app.has_newer && app.has_older);
}

/// A refused undo names the files and asks; leaving them is the first choice, so that Enter overwrites nothing.
#[test]
fn an_undo_that_would_overwrite_files_asks_first() {
    let mut app = talking(70, 16);
    user(&mut app, 1, "fix it");
    assistant(&mut app, 2, true);
    let undo = |app: &mut App| {
        control(app, 'x', 0);
        only(key(app, KeyCode::Char('u'), 0))
    };
    let (path, body, then) = undo(&mut app);
    assert_eq!(path, "/session/ses_1/revert");
    assert_eq!(body, json!({ "messageID": "msg_00001" }));
    let conflict = || {
        ClientError::new(
            "agent.conflict",
            "nothing was reverted: a file was changed since by someone else: a.txt",
            None,
        )
    };
    app.update(Input::Reply(then.clone(), Err(conflict())), 0);
    let shown = screen(&mut app);
    assert!(shown.contains("Take it back anyway?"), "{shown}");
    assert!(shown.contains("leave the files as they are"), "{shown}");
    assert!(key(&mut app, KeyCode::Enter, 0).is_empty());

    app.update(Input::Reply(then, Err(conflict())), 0);
    key(&mut app, KeyCode::Down, 0);
    let (path, body, then) = only(key(&mut app, KeyCode::Enter, 0));
    assert_eq!(path, "/session/ses_1/revert");
    assert_eq!(body, json!({ "messageID": "msg_00001", "force": true }));

    // Another error leaves no choice.
    let busy = ClientError::new("agent.busy", "the session is busy", None);
    app.update(Input::Reply(then, Err(busy)), 0);
    assert!(!screen(&mut app).contains("anyway"));
}

/// Returns path, body and purpose of the only request.
fn only(effects: Vec<Effect>) -> (String, Value, Then) {
    match effects.as_slice() {
        [
            Effect::Call {
                path, body, then, ..
            },
        ] => (path.clone(), body.clone().unwrap(), then.clone()),
        other => panic!("{other:?}"),
    }
}
