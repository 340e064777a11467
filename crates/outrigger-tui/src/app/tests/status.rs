//! The status row.

use serde_json::json;

use super::*;

fn busy(app: &mut App, now: u64) {
    let busy = json!({ "sessionID": "ses_1", "status": { "type": "busy" } });
    app.update(event("session.status", busy), now);
}

/// The state of a plugin that changes later is a notice: it hides neither what runs nor a question, and disappears.
#[test]
fn a_notice_hides_no_work_and_fades() {
    let mut app = talking(80, 14);
    app.update(Input::Progress("plugin slow: active".into()), 1_000);
    assert!(screen(&mut app).contains("─ plugin slow: active"));
    assert_eq!(app.notice_until(), Some(1_000 + NOTICE_SHOWN));
    busy(&mut app, 2_000);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ working; esc interrupts · plugin slow: active"),
        "{shown}"
    );
    app.update(permission("ls"), 3_000);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ waits for your answer · plugin slow: active"),
        "{shown}"
    );
    app.update(Input::Tick, 1_000 + NOTICE_SHOWN);
    assert!(!screen(&mut app).contains("plugin slow"));
    assert_eq!(app.notice_until(), None, "nothing wakes it up any more");
}

#[test]
fn a_slow_hook_is_named_while_it_is_waited_for() {
    let mut app = talking(80, 14);
    busy(&mut app, 1_000);
    let waiting = |session: &str, over| {
        let properties = json!({ "plugin": "slow", "hook": "chat.params", "sessionID": session, "ms": 2_000, "over": over });
        event("outrigger.plugin.waiting", properties)
    };
    app.update(waiting("ses_other", false), 3_000);
    assert!(!screen(&mut app).contains("plugin slow"));
    app.update(waiting("ses_1", false), 3_000);
    app.update(Input::Tick, 5_500);
    let shown = screen(&mut app);
    assert!(
        shown.contains("▸ plugin slow: chat.params, 4 s; esc interrupts"),
        "{shown}"
    );
    app.update(waiting("ses_1", true), 6_000);
    let shown = screen(&mut app);
    assert!(shown.contains("▸ working 5 s; esc interrupts"), "{shown}");
    app.update(waiting("ses_1", false), 7_000);
    app.update(
        event("session.idle", json!({ "sessionID": "ses_1" })),
        8_000,
    );
    assert!(!screen(&mut app).contains("plugin slow"));
}
