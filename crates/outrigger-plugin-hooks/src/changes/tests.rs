use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::hook::{ChangedValues, RecordedValue};
use outrigger_protocol::turn::HookPayload;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Given, MAX_PLACES, RedactFn};

/// All that one answer may add to a record, as JSON: values, and hashes of what is not kept.
const MAX_RECORD: usize = 64 * 1024;

fn as_it_is() -> RedactFn {
    Arc::new(|_, _| {})
}

fn payload(output: Value, history: Option<History>) -> HookPayload {
    HookPayload {
        history,
        ..HookPayload::new(json!({}), output)
    }
}

fn changes(before: Value, after: Value) -> ChangedValues {
    let given = Given::of(&[payload(before, None)]);
    given.changes(&[payload(after, None)], &as_it_is())
}

/// `PLACE BEFORE -> AFTER`, with `-` where nothing stood.
fn lines(values: &ChangedValues) -> Vec<String> {
    let shown = |value: &Option<RecordedValue>| match value {
        None => "-".to_owned(),
        Some(RecordedValue::Whole { value }) => value.to_string(),
        Some(RecordedValue::Excerpt { text, from, .. }) => format!("{from}:{text}"),
        Some(RecordedValue::Digest { bytes, .. }) => format!("{bytes} bytes"),
    };
    values
        .places
        .iter()
        .map(|it| format!("{} {} -> {}", it.at, shown(&it.before), shown(&it.after)))
        .collect()
}

#[test]
fn only_what_differs_is_kept() {
    for (before, after, want) in [
        (
            json!({"a": 1, "b": {"c": [1, 2]}}),
            json!({"a": 1, "b": {"c": [1, 2]}}),
            vec![],
        ),
        (json!({"a": 1}), json!({"a": 2}), vec!["/a 1 -> 2"]),
        (json!({"a": null}), json!({}), vec!["/a null -> -"]),
        (json!({}), json!({"a": null}), vec!["/a - -> null"]),
        (
            json!({"a": {"b": 1, "c": 2}}),
            json!({"a": {"b": 1, "c": 3, "d": 4}}),
            vec!["/a/c 2 -> 3", "/a/d - -> 4"],
        ),
        (
            json!({"a/b~": 1}),
            json!({"a/b~": 2}),
            vec!["/a~1b~0 1 -> 2"],
        ),
        // What stands in front of a list does not move the rest.
        (
            json!({"system": ["a", "b"]}),
            json!({"system": ["new", "a", "b"]}),
            vec!["/system/0 - -> \"new\""],
        ),
        (
            json!({"system": ["a", "b", "c"]}),
            json!({"system": ["a", "c"]}),
            vec!["/system/1 \"b\" -> -"],
        ),
        (
            json!({"system": ["a", "a"]}),
            json!({"system": ["a"]}),
            vec!["/system/1 \"a\" -> -"],
        ),
        (
            json!({"a": [1]}),
            json!({"a": "x"}),
            vec!["/a [1] -> \"x\""],
        ),
        (json!(1), json!(2), vec![" 1 -> 2"]),
    ] {
        assert_eq!(lines(&changes(before, after)), want);
    }
}

#[test]
fn places_of_several_items_begin_with_the_item() {
    let items = |text: &str| [json!({"d": "a"}), json!({"d": text})].map(|it| payload(it, None));
    let values = Given::of(&items("b")).changes(&items("c"), &as_it_is());
    assert_eq!(lines(&values), ["/1/d \"b\" -> \"c\""]);
}

fn message(id: &str, text: &str) -> Value {
    json!({"info": {"id": id}, "parts": [{"text": text}]})
}

#[test]
fn of_a_conversation_what_differs_is_kept() {
    let before: History = [
        message("m1", "one"),
        message("m2", "two"),
        message("m3", "three"),
    ]
    .into_iter()
    .collect();
    let change = |change: &dyn Fn(&mut Vec<Arc<HistoryMessage>>)| {
        let mut messages: Vec<_> = before.iter().cloned().collect();
        change(&mut messages);
        let after = History::of(messages);
        let given = Given::of(&[payload(json!({}), Some(before.clone()))]);
        lines(&given.changes(&[payload(json!({}), Some(after))], &as_it_is()))
    };
    let made = |id: &str, text: &str| Arc::new(HistoryMessage::from(message(id, text)));
    assert_eq!(change(&|_| {}), [""; 0]);
    let text = "/messages/1/parts/0/text \"two\" -> \"changed\"";
    assert_eq!(change(&|it| it[1] = made("m2", "changed")), [text]);
    let m2 = message("m2", "two");
    let gone = format!("/messages/1 {m2} -> -");
    assert_eq!(change(&|it| drop(it.remove(1))), [gone.as_str()]);
    let m4 = message("m4", "four");
    let added = format!("/messages/1 - -> {m4}");
    assert_eq!(
        change(&|it| it.insert(1, made("m4", "four"))),
        [added.as_str()]
    );
    assert_eq!(
        change(&|it| it.swap(0, 2)),
        ["/messages [\"m1\",\"m2\",\"m3\"] -> [\"m3\",\"m2\",\"m1\"]"]
    );
    // Removed in front, and another one changed, which has its new index.
    let text = "/messages/0/parts/0/text \"two\" -> \"changed\"";
    let m1 = format!("/messages/0 {} -> -", message("m1", "one"));
    let both = change(&|it| {
        it.remove(0);
        it[0] = made("m2", "changed");
    });
    assert_eq!(both, [m1.as_str(), text]);
}

#[test]
fn of_a_long_text_the_part_that_differs_is_kept() {
    let long = "ä".repeat(5000);
    let values = changes(
        json!({"t": format!("{long}x{long}")}),
        json!({"t": format!("{long}yz{long}")}),
    );
    let [place] = values.places.as_slice() else {
        panic!("{values:?}")
    };
    let (
        Some(RecordedValue::Excerpt { text, from, bytes }),
        Some(RecordedValue::Excerpt { text: after, .. }),
    ) = (&place.before, &place.after)
    else {
        panic!("{place:?}")
    };
    assert!(text.len() < 500 && text.contains("äxä"), "{text}");
    assert!(after.contains("äyzä"), "{after}");
    assert!(*from > 9000 && *from < 10_000, "{from}");
    assert_eq!(*bytes, 20_001);
}

#[test]
fn what_is_kept_is_bounded() {
    // One value.
    let huge = "x".repeat(1 << 20);
    let values = changes(json!({}), json!({ "t": huge }));
    assert_eq!(lines(&values), ["/t - -> 1048578 bytes"]);
    // Many of them.
    let many = |text: &str| -> Value {
        let places = (0..500).map(|n| (format!("k{n}"), json!(text.repeat(1500))));
        Value::Object(places.collect())
    };
    let values = changes(many("a"), many("b"));
    assert_eq!(values.places.len(), MAX_PLACES);
    assert_eq!(values.more, 500 - MAX_PLACES as u64);
    let bytes = serde_json::to_string(&values).unwrap().len();
    assert!(bytes <= MAX_RECORD, "{bytes}");
}

#[test]
fn secrets_are_taken_out_before_a_value_is_cut() {
    let redact: RedactFn = Arc::new(|name, value| {
        if let Value::String(text) = value {
            *text = match name {
                "authorization" => "[removed]".to_owned(),
                _ => text.replace("hunter2hunter2", "[removed]"),
            };
        }
    });
    let padding = "p".repeat(1990);
    let before = json!({"headers": {"authorization": "a", "x": "y"}, "long": padding});
    let after = json!({
        "headers": {"authorization": ["b"], "x": "hunter2hunter2"},
        "long": format!("{padding}hunter2hunter2{padding}"),
    });
    let given = Given::of(&[payload(before, None)]);
    let values = given.changes(&[payload(after, None)], &redact);
    let text = serde_json::to_string(&values).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("p[removed]p"), "{text}");
    assert!(
        lines(&values).contains(&"/headers/x \"y\" -> \"[removed]\"".to_owned()),
        "{values:?}"
    );
}

/// Of a long text only the surroundings of what is kept are looked through.
#[test]
fn a_secret_that_reaches_into_what_is_kept_is_taken_out() {
    let redact: RedactFn = Arc::new(|name, value| {
        let Value::String(text) = value else { return };
        assert!(
            text.len() < 20_000,
            "{} bytes are looked through",
            text.len()
        );
        *text = match name {
            "token" => "[removed]".to_owned(),
            _ => text.replace("hunter2hunter2", "[removed]"),
        };
    });
    let rest = "p".repeat(60_000);
    // The part that is kept begins 200 bytes before what differs, which is within the secret.
    let text = |c: char| format!("{rest}hunter2hunter2{}{c}{rest}", "q".repeat(195));
    let side = |c: char| json!({ "t": text(c), "token": text(c) });
    let given = Given::of(&[payload(side('x'), None)]);
    let values = given.changes(&[payload(side('y'), None)], &redact);
    let shown = lines(&values);
    assert!(!shown.join("").contains("hunter2"), "{shown:?}");
    assert!(
        shown[0].contains("qqqxppp") && shown[0].contains("qqqyppp"),
        "{shown:?}"
    );
    assert_eq!(shown[1], "/token 60009:[removed] -> 60009:[removed]");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        "[a-cä]{0,3}".prop_map(Value::from),
        "[a-cä\"]{2000,2300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-d/~]{1,2}", inner, 0..5)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever a handler left: there is a difference exactly where there is one, each names a place that both have as it says, and
    /// all of it is bounded.
    #[test]
    fn differences_are_those_of_the_outputs(before in any_json(), after in any_json()) {
        let values = changes(before.clone(), after.clone());
        prop_assert_eq!(values.is_empty(), before == after);
        for place in &values.places {
            for (whole, side) in [(&before, &place.before), (&after, &place.after)] {
                if let Some(RecordedValue::Whole { value }) = side {
                    prop_assert_eq!(whole.pointer(&place.at), Some(value));
                }
            }
            prop_assert!(place.before.is_some() || place.after.is_some());
        }
        prop_assert!(serde_json::to_string(&values).unwrap().len() <= MAX_RECORD);
    }
}
