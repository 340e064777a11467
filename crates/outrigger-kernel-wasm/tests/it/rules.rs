//! Permissions, routes, admission and breakers by JSON.

use outrigger_kernel::breaker::{Breaker, Gate, Rules};
use outrigger_kernel::permission::{evaluate, is_disabled};
use outrigger_protocol::permission::{Action, Rule};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases::Asked;

fn rule() -> impl Strategy<Value = Rule> {
    let permission = prop::sample::select(vec!["*", "edit", "browser", "write"]);
    let pattern = prop::sample::select(vec!["*", "a*", "a/b", "http://x/*", "*.env", "é?"]);
    let action = prop::sample::select(vec![Action::Allow, Action::Ask, Action::Deny]);
    (permission, pattern, action).prop_map(|(permission, pattern, action)| Rule {
        permission: permission.to_owned(),
        pattern: pattern.to_owned(),
        action,
    })
}

proptest! {
    #![proptest_config(crate::config(128))]

    #[test]
    fn permissions_are_the_kernels(
        rules in prop::collection::vec(rule(), 0..6),
        permission in prop::sample::select(vec!["edit", "browser", "write", "read"]),
        pattern in prop::sample::select(vec!["a/b", "http://x/y", ".env", "éa", ""]),
    ) {
        let mut asked = Asked::new("permissions");
        let with = json!({ "permission": permission, "pattern": pattern, "rules": rules });
        prop_assert_eq!(asked.call("rule.permission", with.clone()).unwrap(), json!(evaluate(permission, pattern, &[&rules])));
        let offered = asked.call("rule.offered", json!({ "tool": permission, "rules": rules })).unwrap();
        prop_assert_eq!(offered, json!(!is_disabled(permission, &[&rules])));
        let path = json!({ "permission": permission, "asked": pattern, "others": ["/p/a/b"], "rules": rules });
        asked.call("rule.path", path).unwrap();
    }

    #[test]
    fn breakers_are_the_kernels_and_outlive_their_host(steps in prop::collection::vec((0..3_u8, 0..40_000_u64), 0..30)) {
        let (mut native, mut now) = (Breaker::default(), 1_000);
        let mut asked = Asked::new("breakers");
        for (how, wait) in steps {
            now += wait;
            let gate = native.ask(now);
            let said = asked.call("breaker.ask", json!({ "name": "p/hook", "now": now })).unwrap();
            prop_assert_eq!(&said["gate"], match gate { Gate::Call => "call", Gate::Trial => "trial", Gate::Skip { .. } => "skip" });
            if matches!(gate, Gate::Skip { .. }) {
                continue;
            }
            let word = ["answered", "timed_out", "unclear"][usize::from(how)];
            let turned = match how {
                0 => native.answered(gate),
                1 => native.timed_out(gate, now, &Rules::default()),
                _ => native.unclear(gate),
            };
            let with = json!({ "name": "p/hook", "trial": gate == Gate::Trial, "how": word, "now": now });
            prop_assert_eq!(asked.call("breaker.ended", with).unwrap().is_null(), turned.is_none());
        }
        let kept = asked.call("breaker.keep", json!({})).unwrap();
        prop_assert_eq!(kept.get("p/hook").cloned(), native.keep().map(|it| json!(it)));
        asked.call("breaker.recall", json!({ "breakers": kept, "now": now })).unwrap();
        prop_assert_eq!(asked.call("breaker.keep", json!({})).unwrap(), kept);
    }
}

#[test]
fn routes_and_admission_by_table() {
    let mut asked = Asked::new("routes");
    let routes = json!([
        { "contract": "read", "path": "src", "provider": "bridge" },
        { "contract": "browser.write", "provider": "cdp-ext" },
        { "provider": "opfs" },
    ]);
    for (contract, place, want) in [
        ("read", Some("src/a"), 0),
        ("browser.write", None, 1),
        ("bash", None, 2),
        ("read", Some("docs/a"), 2),
    ] {
        let with = json!({ "contract": contract, "tool": "t", "agent": "a", "directory": "/", "place": place, "routes": routes });
        assert_eq!(
            asked.call("rule.route", with).unwrap(),
            want,
            "{contract} {place:?}"
        );
    }
    let candidate = |id: &str, depends: Value| json!({ "id": id, "source": "Bundled", "place": id, "depends_on": depends });
    let candidates = json!([
        candidate("a", json!(["b"])),
        candidate("b", json!([])),
        candidate("c", json!(["nosuch"]))
    ]);
    let with = json!({ "candidates": candidates, "rules": { "deny": ["b"] } });
    let entries = asked.call("rule.admission", with).unwrap();
    let said: Vec<(&str, bool, &str)> = entries
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |value: &'static str| it[value].as_str().unwrap_or_default();
            let why = it["why"]["reason"].as_str().unwrap_or_default();
            (text("id"), it["enabled"] == true, why)
        })
        .collect();
    assert_eq!(
        said,
        [
            ("a", false, "DependencyDisabled"),
            ("b", false, "Denied"),
            ("c", false, "MissingDependency")
        ]
    );
}
