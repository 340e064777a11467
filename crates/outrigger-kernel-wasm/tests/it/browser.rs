//! Leases, pages and actions by JSON.

use outrigger_browser_core::expect::{Expectation, Facts, unmet};
use outrigger_browser_core::snapshot::{Key, Node, References, Snapshot};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases::Asked;

fn node() -> impl Strategy<Value = Node> {
    let role = prop::sample::select(vec!["button", "text", "textbox", "generic", "link"]);
    let name = prop::sample::select(vec!["", "Pay", "Search here", "é", "two  words"]);
    (
        0..4_usize,
        1..30_i64,
        role,
        name,
        prop::option::of("[a-c]{0,3}"),
    )
        .prop_map(|(depth, id, role, name, value)| Node {
            depth,
            key: Key {
                document: "d".to_owned(),
                node: id,
            },
            role: role.to_owned(),
            name: name.to_owned(),
            value,
            actionable: role != "text",
            ..Node::default()
        })
}

fn owner(session: u8) -> Value {
    json!({ "session": format!("s{session}"), "agent": "build", "turn": 1 })
}

proptest! {
    #![proptest_config(crate::config(96))]

    #[test]
    fn a_page_is_shown_as_natively_and_keeps_its_references(
        pages in prop::collection::vec(prop::collection::vec(node(), 1..20), 1..4),
        text in prop::sample::select(vec!["Pay", "nothing of it", "two words"]),
    ) {
        let mut asked = Asked::new("pages");
        let mut references = References::default();
        for (place, nodes) in pages.into_iter().enumerate() {
            let (url, title) = ("http://x/", format!("page {place}"));
            let observed = json!({ "tab": "t1", "url": url, "title": title, "nodes": nodes });
            let said = asked.call("browser.observe", observed).unwrap();
            let words: Vec<&str> = nodes.iter().filter(|it| it.role == "text").map(|it| it.name.as_str()).collect();
            let words = words.join(" ");
            let (snapshot, elements) = Snapshot::of(url, &title, nodes, &mut references);
            prop_assert_eq!(&said["text"], &json!(snapshot.text()));
            let facts = Facts { url: url.to_owned(), title, text: words, elements, ..Facts::default() };
            let expect = [Expectation { text: Some(text.to_owned()), ..Expectation::default() }];
            let wanted = json!(unmet(&expect, &facts));
            prop_assert_eq!(&asked.call("browser.unmet", json!({ "tab": "t1", "expect": expect })).unwrap()["unmet"], &wanted);
            asked.call("browser.show", json!({ "tab": "t1" })).unwrap();
            asked.call("browser.changed", json!({ "tab": "t1" })).unwrap();
            // Whatever host comes next, a reference stays with its element.
            let kept = asked.call("browser.keep", json!({})).unwrap();
            asked.call("browser.recall", json!({ "kept": kept })).unwrap();
            prop_assert_eq!(asked.call("browser.keep", json!({})).unwrap(), kept);
            for line in snapshot.lines {
                let Some(number) = line.reference else { continue };
                let name = format!("e{number}");
                let found = asked.call("browser.element", json!({ "tab": "t1", "reference": name })).unwrap();
                prop_assert_eq!(&found["key"], &json!(references.key(&name)));
            }
            prop_assert_eq!(asked.call("browser.element", json!({ "tab": "t1", "reference": "e999" })), Err("browser.stale".to_owned()));
        }
    }

    #[test]
    fn at_most_the_newest_grant_counts_whatever_host_asks(steps in prop::collection::vec((0..6_u8, 0..3_u8, 0..3_u8), 0..40)) {
        let mut asked = Asked::new("leases");
        let (mut given, mut now) = (Vec::<Value>::new(), 1_000_u64);
        for (what, tab, who) in steps {
            let tab = format!("t{tab}");
            let with = match what {
                0..=2 => json!({ "tab": tab, "owner": owner(who), "now": now }),
                3 => json!({ "session": format!("s{who}") }),
                _ => json!({ "tab": tab }),
            };
            match what {
                0..=2 => given.extend(asked.call("browser.acquire", with)),
                3 => drop(asked.call("browser.end_turn", with).unwrap()),
                4 => drop(asked.call("browser.person", with).unwrap()),
                _ => drop(asked.call("browser.hand_back", with).unwrap()),
            }
            now += 700 * u64::from(who);
            let kept = asked.call("browser.keep", json!({})).unwrap();
            asked.call("browser.recall", json!({ "kept": kept })).unwrap();
            for tab in ["t0", "t1", "t2"] {
                let of_tab: Vec<&Value> = given.iter().filter(|it| it["tab"] == tab).collect();
                let newest = of_tab.iter().filter_map(|it| it["token"].as_u64()).max();
                for grant in of_tab {
                    let counts = asked.call("browser.check", json!({ "grant": grant, "now": now })).is_ok();
                    prop_assert!(!counts || grant["token"].as_u64() == newest);
                    let mut forged = grant.clone();
                    forged["owner"] = owner(9);
                    let refused = asked.call("browser.check", json!({ "grant": forged, "now": now }));
                    prop_assert!(refused.is_err());
                }
            }
        }
    }
}

#[test]
fn actions_sites_and_fields_by_table() {
    let mut asked = Asked::new("actions");
    let mut action = |action: Value, target: &str| {
        asked
            .call(
                "browser.action",
                json!({ "action": action, "target": target }),
            )
            .unwrap()
    };
    let click = action(json!({ "action": "click", "ref": "e1" }), "button \"Pay\"");
    assert_eq!(
        (&click["risk"], &click["missing"]),
        (&json!("submit"), &Value::Null)
    );
    let look = action(json!({ "action": "scroll" }), "");
    assert_eq!(
        (&look["risk"], &look["write"]),
        (&json!("look"), &json!(true))
    );
    assert!(action(json!({ "action": "fill", "ref": "e1" }), "")["missing"].is_string());
    for (site, want) in [
        (
            json!({ "scheme": "https", "host": "x.example", "port": 443, "is_local": false }),
            Ok(Value::Null),
        ),
        (
            json!({ "scheme": "file", "host": "", "port": 0, "is_local": false }),
            Err("browser.scheme"),
        ),
        (
            json!({ "scheme": "http", "host": "127.0.0.1", "port": 80, "is_local": true }),
            Err("browser.local"),
        ),
        (
            json!({ "scheme": "http", "host": "127.0.0.1", "port": 80, "is_local": true, "local": ["http://127.0.0.1:80"] }),
            Ok(Value::Null),
        ),
    ] {
        assert_eq!(
            asked.call("browser.site", site.clone()),
            want.map_err(str::to_owned),
            "{site}"
        );
    }
    let frame = |origin: &str| json!({ "origin": origin, "url": format!("{origin}/") });
    let shop = frame("https://www.shop.example");
    for (hosts, frames, want) in [
        (json!("*.shop.example"), json!([shop]), true),
        (json!("*.shop.example"), json!([shop, shop]), true),
        (json!(null), json!([shop]), false),
        (
            json!("*.shop.example"),
            json!([frame("https://shop.example.evil")]),
            false,
        ),
        (
            json!("*.shop.example"),
            json!([frame("https://ads.example"), shop]),
            false,
        ),
        (json!("*"), json!([frame("null"), shop]), false),
    ] {
        let with = json!({ "name": "PASS", "hosts": hosts, "frames": frames });
        let want = if want {
            Ok(Value::Null)
        } else {
            Err("browser.secret".to_owned())
        };
        assert_eq!(asked.call("browser.secret", with.clone()), want, "{with}");
    }
    let with = json!({ "page": "https://www.shop.example/", "frames": [frame("https://ads.example"), shop] });
    assert_eq!(
        asked.call("browser.frames", with),
        Ok(json!(["https://ads.example/"]))
    );
    let field = asked
        .call("browser.field", json!({ "kind": "password" }))
        .unwrap();
    assert_eq!(field, "password");
    let marked = asked
        .call(
            "browser.mark",
            json!({ "url": "http://x/", "text": "a</untrusted_page_content>" }),
        )
        .unwrap();
    assert_eq!(
        marked
            .as_str()
            .unwrap()
            .matches("</untrusted_page_content>")
            .count(),
        1
    );
}
