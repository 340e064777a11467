//! Events in any order.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Generates an event.
fn anything() -> impl Strategy<Value = Input> {
    let n = 0..6_usize;
    prop_oneof![
        ".{0,4}".prop_map(Input::Paste),
        (0..90_u16, 0..40_u16).prop_map(|(columns, rows)| Input::Resize(columns, rows)),
        (-30..30_isize).prop_map(Input::Wheel),
        prop::sample::select(vec!["a", "/", "@", "!", "y", "n", "v", "i", "1", " "])
            .prop_map(|it| Input::Key(KeyEvent::new(KeyCode::Char(it.chars().next().unwrap()), KeyModifiers::NONE))),
        prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Backspace, KeyCode::PageUp,
            KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::F(1)
        ])
        .prop_map(|it| Input::Key(KeyEvent::new(it, KeyModifiers::NONE))),
        prop::sample::select("xcdpoulmnkwgbfrthsay".chars().collect::<Vec<_>>())
            .prop_map(|it| Input::Key(KeyEvent::new(KeyCode::Char(it), KeyModifiers::CONTROL))),
        n.clone().prop_map(|n| event("message.updated", json!({ "sessionID": "ses_1", "info": { "role": "user",
            "id": format!("msg_{n}"), "sessionID": "ses_1", "time": { "created": 1 }, "agent": "b", "model": { "providerID": "p", "modelID": "m" } } }))),
        (n.clone(), "(\\PC|\\n|\u{1b}\\[2J|日|`|#|-| ){0,40}").prop_map(|(n, text)| event("message.part.updated", json!({ "sessionID": "ses_1", "time": 1,
            "part": { "id": format!("prt_{n}"), "sessionID": "ses_1", "messageID": format!("msg_{n}"), "type": "text", "text": text } }))),
        (n.clone(), ".{0,9}").prop_map(|(n, delta)| event("message.part.delta", json!({ "sessionID": "ses_1", "messageID": format!("msg_{n}"),
            "partID": format!("prt_{n}"), "field": "text", "delta": delta }))),
        n.clone().prop_map(|n| event("message.part.updated", json!({ "sessionID": "ses_1", "time": 1, "part": { "id": format!("call_{n}"),
            "sessionID": "ses_1", "messageID": format!("msg_{n}"), "type": "tool", "callID": "c", "tool": "edit", "state": edit("a", "x\n", "日\u{1b}\n") } }))),
        n.clone().prop_map(|n| event("message.removed", json!({ "sessionID": "ses_1", "messageID": format!("msg_{n}") }))),
        n.prop_map(|_| event("question.asked", json!({ "id": "que_1", "sessionID": "ses_1",
            "questions": [{ "question": "q\u{1b}", "header": "h", "options": [{ "label": "a" }] }] }))),
        Just(permission("ls \u{202e}x")),
        Just(event("permission.replied", json!({ "sessionID": "ses_1", "requestID": "per_1", "reply": "once" }))),
        Just(event("session.idle", json!({ "sessionID": "ses_1" }))),
        Just(Input::Gap),
        Just(Input::Reply(Then::Messages("ses_1".into()), Ok(json!([])))),
        Just(Input::Reply(Then::Sessions, Ok(json!([1])))),
        Just(Input::Reply(Then::Over("ses_1".into()), Ok(json!({ "outcome": "cancelled" })))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any events in any order, the screen can be drawn and contains nothing that a terminal obeys.
    #[test]
    fn any_order_of_events_can_be_shown(inputs in proptest::collection::vec(anything(), 0..60)) {
        let mut app = talking(60, 20);
        for (now, input) in (0..).zip(inputs) {
            app.update(input, now * 300);
            let buffer = buffer(&mut app);
            for cell in &buffer.content {
                prop_assert!(!cell.symbol().contains(outrigger_terminal::is_control), "{:?}", cell.symbol());
            }
        }
    }
}
