//! Laws of the merger (E4, E5), whatever the messages and their order.

use std::collections::BTreeMap;

use outrigger_kernel::merge::{Conversation, Limits, Merger, bundled, merge_all, merger};
use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::merged::ConversationMessage;
use proptest::prelude::*;
use serde_json::json;

use crate::script::script;
use crate::world::World;

fn messages() -> impl Strategy<Value = Vec<ConversationMessage>> {
    let kind = prop::sample::select(vec!["tool_use", "tool_result", "text", "tool_execution"]);
    let call = prop::sample::select(vec![
        Some("a"),
        Some("b"),
        Some("c"),
        Some("d"),
        Some(""),
        None,
    ]);
    let tool = prop::sample::select(vec!["read", "edit", "bash", "grep", "other"]);
    let one = (kind, call, tool, 0..400_u64, any::<bool>());
    prop::collection::vec(one, 0..40).prop_map(|all| {
        let make = |(n, (kind, call, tool, timestamp, is_error)): (usize, (&str, Option<&str>, &str, u64, bool))| {
            let mut metadata = json!({ "tool_name": tool, "is_error": is_error, "output": "/p/a:", "input": {"filePath": "x"} });
            if let Some(call) = call {
                metadata["tool_use_id"] = json!(call);
            }
            ConversationMessage {
                id: format!("m{n}"),
                role: "assistant".into(),
                message_type: kind.into(),
                content: format!("content {n}"),
                timestamp,
                metadata: metadata.as_object().cloned().unwrap(),
            }
        };
        all.into_iter().enumerate().map(make).collect()
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    (0..500_u64, 0..5_usize).prop_map(|(max_wait_ms, max_waiting)| Limits {
        max_wait_ms,
        max_waiting,
    })
}

/// Where each input came out, and whether as a half.
fn places(
    input: &[ConversationMessage],
    output: &[ConversationMessage],
) -> Result<BTreeMap<String, usize>, TestCaseError> {
    let mut places = BTreeMap::new();
    let mut results: Vec<&ConversationMessage> = input
        .iter()
        .filter(|m| m.message_type == "tool_result")
        .collect();
    for (at, message) in output.iter().enumerate() {
        let Some(half) = message.id.strip_suffix("-merged") else {
            let given = input.iter().find(|m| m.id == message.id);
            prop_assert_eq!(given, Some(message), "what passes passes unchanged");
            prop_assert!(
                places.insert(message.id.clone(), at).is_none(),
                "{} comes twice",
                message.id
            );
            continue;
        };
        let start = input.iter().find(|m| m.id == half).unwrap();
        prop_assert_eq!(&start.message_type, "tool_use");
        prop_assert_eq!(start.timestamp, message.timestamp);
        // Its result is the first of that call after the start that is not accounted for.
        let behind = |m: &&ConversationMessage| {
            input.iter().position(|x| x.id == m.id) > input.iter().position(|x| x.id == half)
        };
        let alone = |m: &&ConversationMessage| !output.iter().any(|o| o.id == m.id);
        let same = |m: &&ConversationMessage| {
            m.metadata.get("tool_use_id") == start.metadata.get("tool_use_id")
        };
        let place = results
            .iter()
            .position(|m| behind(m) && alone(m) && same(m));
        let Some(place) = place else {
            return Err(TestCaseError::fail(format!("{} has no result", message.id)));
        };
        let result = results.remove(place);
        prop_assert_eq!(&message.metadata["is_error"], &result.metadata["is_error"]);
        prop_assert!(places.insert(start.id.clone(), at).is_none());
        prop_assert!(places.insert(result.id.clone(), at).is_none());
    }
    Ok(places)
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn nothing_is_lost_doubled_or_put_out_of_order(input in messages(), limits in limits()) {
        let mut merger = Merger::new(bundled(), limits);
        let mut output = vec![];
        for message in &input {
            output.extend(merger.push(message.clone()));
            prop_assert!(merger.waiting() <= limits.max_waiting, "memory is bounded");
        }
        output.extend(merger.finish());
        prop_assert_eq!(merger.waiting(), 0);

        let places = places(&input, &output)?;
        prop_assert_eq!(places.len(), input.len(), "every message is itself or half of a merged one");
        // Everything but starts keeps its order: a merged message stands where its result came.
        let order: Vec<usize> = input.iter().filter(|m| m.message_type != "tool_use").map(|m| places[&m.id]).collect();
        prop_assert!(order.is_sorted(), "{order:?}");
        // A start never comes before what came before it.
        for (n, start) in input.iter().enumerate().filter(|(_, m)| m.message_type == "tool_use") {
            for before in input.iter().take(n).filter(|m| m.message_type != "tool_use") {
                prop_assert!(places[&before.id] < places[&start.id]);
            }
        }
    }

    #[test]
    fn without_limits_every_result_behind_a_start_finds_it(input in messages()) {
        let output = merge_all(input.clone());
        // The pairs, counted by hand: a start is open until its result or the next start of the call.
        let (mut open, mut pairs) = (std::collections::BTreeSet::new(), 0);
        for message in &input {
            let Some(call) = message.metadata.get("tool_use_id") else { continue };
            match message.message_type.as_str() {
                "tool_use" => {
                    open.insert(call.to_string());
                }
                "tool_result" if open.remove(&call.to_string()) => pairs += 1,
                _ => {}
            }
        }
        prop_assert_eq!(output.iter().filter(|m| m.id.ends_with("-merged")).count(), pairs);
    }

    /// E5: what is live and what is rebuilt from the stored events are the same, wherever a reader begins to follow.
    #[test]
    fn live_equals_rebuilt(script in script(), random in any::<u64>(), breaks in prop::collection::vec(any::<prop::sample::Index>(), 0..4)) {
        let mut world = World::new(script, random);
        world.finish();
        let events: Vec<&Event> = world.effects.iter().filter_map(|e| match e {
            Effect::Publish { event } => Some(event),
            _ => None,
        }).collect();

        let mut whole = Conversation::default();
        let rebuilt = merge_all(events.iter().flat_map(|event| whole.on(event)));

        // Live: event by event; a client that comes late reads the store up to there and follows from there.
        let mut live = vec![];
        let (mut conversation, mut pipe) = (Conversation::default(), merger());
        for event in &events {
            for message in conversation.on(event) {
                live.extend(pipe.push(message));
            }
        }
        let waiting = pipe.finish();
        prop_assert_eq!(&rebuilt, &[live.clone(), waiting.clone()].concat());
        for at in breaks {
            let at = if events.is_empty() { 0 } else { at.index(events.len()) };
            let (mut late, mut pipe) = (Conversation::default(), merger());
            let mut seen: Vec<ConversationMessage> = events[..at].iter().flat_map(|e| late.on(e)).flat_map(|m| pipe.push(m)).collect();
            seen.extend(events[at..].iter().flat_map(|e| late.on(e)).flat_map(|m| pipe.push(m)).collect::<Vec<_>>());
            prop_assert_eq!(&seen, &live);
        }
        // Every call of the turn is one message, and the calls that never ran are, too.
        prop_assert_eq!(waiting.len(), 0, "a turn that is over leaves no start behind");
        let stored = crate::world::Stored::of(&world.effects);
        let calls = stored.parts.values().filter(|p| p.kind.name() == "tool").count();
        prop_assert_eq!(rebuilt.iter().filter(|m| m.message_type == "tool_execution").count(), calls);
        // Applied again, a part makes no new event.
        for event in &events {
            prop_assert!(whole.on(event).is_empty());
        }
    }
}
