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

/// Why a plugin does not run, which plugins share a process, and what a breaker means.
#[test]
fn the_list_of_plugins_says_why() {
    let plugin = |id: &str, pid: u64| json!({ "id": id, "stage": "active", "state": "active", "pid": pid, "usage": { "rss": 45_000_000 } });
    let mut slow = plugin("slow", 7);
    slow["breakers"] = json!([{ "hook": "chat.message", "state": "open", "timeouts": 0, "opens_in_ms": 29_100 },
        { "hook": "event", "state": "closed", "timeouts": 1 }]);
    let broken = json!({ "id": "broken", "stage": "failed", "state": "inactive", "cause": { "at": "found", "code": "plugin.load",
        "message": "cannot load index.ts: Unexpected token in line 3", "hint": "mend the file, then `outrigger plugin reload broken`" } });
    let perf =
        json!([{ "plugin": "slow", "hook": "event", "p50_ms": 1.0, "p95_ms": 2.5, "calls": 1 }]);
    let all = json!({ "plugins": [plugin("one", 7), slow, broken], "perf": perf });
    for columns in [80, 40] {
        let mut app = talking(columns, 24);
        app.open_list(crate::state::picker::ListKind::Plugins);
        app.update(Input::Reply(Then::Plugins, Ok(all.clone())), 0);
        let shown = screen(&mut app);
        assert!(shown.contains("active · 45 MB for 2 plugins\n"), "{shown}");
        assert!(shown.contains("[plugin.load]"), "{shown}");
        if columns == 80 {
            insta::assert_snapshot!(shown, @r"

             Outrigger

                /  commands
                @  files
                !  a line for the shell
               f1  the keys



            ─ Plugins ────────────────────────────────────────────────────────── esc closes
            ❯
            ▸ one                                              active · 45 MB for 2 plugins
              slow                                           active · in the process of one
                  chat.message is skipped because it kept timing out; it is tried again in
                  30 s
                  event timed out once lately
                event                                      p50 1.0 ms · p95 2.5 ms · 1 call
              broken                                                                 failed
                  cannot load index.ts: Unexpected token in line 3 [plugin.load]
                  hint: mend the file, then `outrigger plugin reload broken`
            ────────────────────────────────────────────────────────────────────────────────
            ❯ what is to be done?
             build                                                 $0.01 · /home/me/project
            ");
        }
    }
}
