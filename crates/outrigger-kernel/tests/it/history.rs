//! A shared conversation is, for handlers and their results, a list like any other (A14).

use outrigger_kernel::hooks::{Chain, Folded, Handler, HookPoint, Rights};
use outrigger_protocol::hook::{Change, HookOutcome, Key, OutcomeKind, Patch};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::turn::HookPayload;
use proptest::prelude::*;
use serde_json::{Value, json};

fn fold(item: HookPayload, answers: Vec<HookOutcome>) -> (Value, Folded) {
    let handlers = (0..answers.len()).map(|order| Handler {
        plugin: PluginId(format!("p{order}")),
        instance: 0,
        process: 0,
        priority: 0,
        order: u32::try_from(order).unwrap(),
        fail_closed: false,
        rights: Rights::ALL,
    });
    let point = HookPoint::LlmBeforeMessages;
    let mut chain = Chain::new(point, handlers.collect(), vec![item]);
    for (handler, answer) in answers.into_iter().enumerate() {
        chain.feed(handler, answer, 0.0);
    }
    let mut folded = chain.finish();
    let mut output = folded.outputs.remove(0);
    if let Some(history) = folded.history.take() {
        output["messages"] = json!(history);
    }
    (output, folded)
}

fn key() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["info", "id", "parts", "text", "length", "0"]);
    prop_oneof![
        (0_usize..5).prop_map(|i| json!(i)),
        names.prop_map(|n| json!(n))
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!("text"),
        json!([]),
        json!([1, {"info": {"id": "m9"}}]),
        json!({"info": {"id": "m1"}, "parts": [{"text": "other"}]}),
        json!({"messages": [{"info": {}}, 2]}),
        json!({"messages": "none"}),
    ])
}

fn change() -> impl Strategy<Value = Change> {
    let first = prop_oneof![8 => Just(json!("messages")), 1 => Just(json!("other"))];
    let path = prop_oneof![
        1 => Just(Vec::new()),
        12 => (first, prop::collection::vec(key(), 0..4))
            .prop_map(|(first, rest)| std::iter::once(first).chain(rest).collect()),
    ];
    (path, prop::option::of(value())).prop_map(|(path, value)| {
        let mut change = json!({ "path": path });
        if let Some(value) = value {
            change["value"] = value;
        }
        serde_json::from_value(change).unwrap()
    })
}

fn messages() -> Vec<Value> {
    let message =
        |i| json!({"info": {"id": format!("m{i}")}, "parts": [{"text": "one"}, {"text": "two"}]});
    (0..3).map(message).collect()
}

proptest! {
    #[test]
    fn what_is_changed_in_it_is_what_is_changed_in_a_list(
        answers in prop::collection::vec(prop::collection::vec(change(), 0..4), 1..4),
    ) {
        let answers: Vec<_> = answers
            .into_iter()
            .map(|changes| HookOutcome::patch(vec![changes]))
            .collect();
        let plain = HookPayload::new(json!({}), json!({ "messages": messages() }));
        let shared = HookPayload::with_history(json!({}), messages().into_iter().collect());
        prop_assert_eq!(json!(plain), json!(shared));
        let (output, plain) = fold(plain, answers.clone());
        let (same, shared) = fold(shared, answers);
        prop_assert_eq!(&output, &same);
        prop_assert_eq!(plain.runs, shared.runs, "{:?}", output);
    }
}

#[test]
fn an_order_is_given_by_the_messages_before() {
    let lost = "its answer names messages that there are not";
    let z = || {
        vec![vec![Change {
            path: vec![Key::Name("messages".into()), Key::Index(0)],
            value: Some(json!("z")),
        }]]
    };
    for (order, items, left) in [
        (json!([[1, 2], [0, 1]]), z(), Ok(json!(["z", "c", "a"]))),
        (json!([{"value": 1}, [2, 1]]), z(), Ok(json!(["z", "c"]))),
        (json!([[1, 2]]), Vec::new(), Ok(json!(["b", "c"]))),
        (json!([]), z(), Ok(json!(["z"]))),
        (json!([[2, 2]]), z(), Err(lost)),
        (json!([[0, 2], [0, 2]]), z(), Err(lost)),
        (json!([[usize::MAX, 1]]), z(), Err(lost)),
    ] {
        let history = ["a", "b", "c"].map(|text| json!(text));
        let item = HookPayload::with_history(json!({}), history.into_iter().collect());
        let patch = Patch {
            order: Some(serde_json::from_value(order.clone()).unwrap()),
            items,
        };
        let (output, folded) = fold(item, vec![HookOutcome::Patch(patch)]);
        let run = &folded.runs[0];
        match left {
            Ok(left) => {
                assert_eq!(output["messages"], left, "{order}");
                assert_eq!(run.outcome, OutcomeKind::Ok, "{order}");
            }
            Err(lost) => {
                assert_eq!(output["messages"], json!(["a", "b", "c"]), "{order}");
                assert_eq!(run.outcome, OutcomeKind::Lost, "{order}");
                assert_eq!(run.message.as_deref(), Some(lost), "{order}");
            }
        }
    }
}
