//! What nobody gets past: leases that do not count, and failures that are called a success (C9, 6 and 7).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use outrigger_browser::provider::{ActionTarget, Step};
use outrigger_browser_core::action::Kind;
use outrigger_browser_core::lease::Grant;
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use serde_json::json;

use crate::support::{WAIT, find, owner, site};
use crate::tools::Room;

/// A lease that does not count, of many kinds.
fn forged(number: u64, stale: &Grant, held: &Grant) -> Grant {
    match number % 4 {
        0 => stale.clone(),
        1 => Grant {
            token: held.token + 1 + number,
            ..held.clone()
        },
        2 => Grant {
            owner: owner("thief"),
            ..held.clone()
        },
        _ => Grant {
            token: number,
            tab: "t99".into(),
            ..held.clone()
        },
    }
}

/// An action whose failure plugins call a success, at each point that they are asked at.
async fn lied_about(it: &Room, is_done: bool) {
    it.host.lies.store(true, Ordering::SeqCst);
    let action = if is_done {
        json!({ "action": "press", "text": "F2", "timeout_ms": 1, "expect": [{ "text": "Thank you" }] })
    } else {
        json!({ "action": "back" })
    };
    match it.call_as("s", "action", action).await {
        Ok(output) => {
            assert!(is_done, "{output:?}");
            let said = (&output.metadata["status"], &output.metadata["verify"]);
            assert_eq!(said, (&json!("failed_verify"), &json!("failed_verify")));
            assert!(
                output
                    .output
                    .contains("failed_verify: expected the text \"Thank you\", but saw:"),
                "{}",
                output.output
            );
        }
        Err((code, message)) => {
            assert!(!is_done && code == "tool.failed", "{code}: {message}");
            assert!(
                message.contains("there is no page before or after this one"),
                "{message}"
            );
        }
    }
    it.host.lies.store(false, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_leases_and_successes_that_do_not_count_are_refused_and_in_the_audit() {
    let page = r#"<title>0</title><button onclick="document.title = Number(document.title) + 1">Count</button>"#;
    let at = site(vec![("/", page.to_owned())]).await;
    let Some(it) = Room::new(&at, &[]) else {
        return;
    };
    it.call("open", json!({ "url": at })).await;
    let provider = it.browser.running().unwrap();
    let look = provider.look("t1").await.unwrap();
    let click = Step {
        place: Some(ActionTarget::Element(
            find(&look, "button", "Count").key.clone(),
        )),
        ..Step::of(Kind::Click, WAIT)
    };
    let stale = provider.acquire("t1", &owner("s")).unwrap();
    it.browser.end_turn("s");
    it.audit.lock().unwrap().clear();
    let mut codes = BTreeMap::new();
    for number in 0..1000u64 {
        match number % 10 {
            8 => lied_about(&it, true).await,
            9 => lied_about(&it, false).await,
            _ => {
                // The tool's own lease of now, which nobody else may copy.
                let mut me = owner("s");
                me.turn = 1;
                let held = provider.acquire("t1", &me).unwrap();
                let forged = forged(number, &stale, &held);
                let error = match number % 3 {
                    0 => provider
                        .eval(&forged, "document.title = 'evil'")
                        .await
                        .map(drop),
                    _ => provider.act(&forged, &click).await.map(drop),
                };
                *codes.entry(error.unwrap_err().code()).or_insert(0) += 1;
            }
        }
    }
    let audit = it.audit.lock().unwrap().clone();
    let of_browser = |it: &&AuditRecord| it.kind == AuditKind::Browser && it.errored;
    let mut decisions = BTreeMap::new();
    for record in audit.iter().filter(of_browser) {
        // That something could not be done is not a refusal.
        let is_refused = record.policy_check_result == format!("refused {}", record.decision);
        assert_eq!(
            is_refused,
            record.decision != "browser.not_done",
            "{record:?}"
        );
        *decisions.entry(record.decision.as_str()).or_insert(0) += 1;
    }
    codes.extend([("failed_verify", 100), ("browser.not_done", 100)]);
    assert_eq!(decisions, codes);
    assert_eq!(decisions.values().sum::<i32>(), 1000);
    // What plugins answered at each of the points was looked at by the guard, and not taken.
    let refused = it.host.refused.lock().unwrap().clone();
    for point in [
        "cdp.after_verify",
        "tool.after_result",
        "cdp.on_error",
        "tool.on_error",
    ] {
        assert!(
            refused.get(point).is_some_and(|count| *count >= 100),
            "{refused:?}"
        );
    }
    assert_eq!(provider.look("t1").await.unwrap().title, "0");
    it.browser.close().await;
}
