//! Laws of the conversation (E4, E5), for any output of agents in any order.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_kernel::merge::{AgentParts, Author, Conversation, Converter, Form, Transcript};
use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::merged::{AgentOutput, Change, EntryState};
use outrigger_protocol::message::{MessageInfo, Part};
use proptest::prelude::*;
use serde_json::json;

use crate::agent_parts::Written;
use crate::script::script;
use crate::world::World;

fn outputs() -> impl Strategy<Value = Vec<AgentOutput>> {
    let kind = prop::sample::select(vec!["use", "result", "text", "other"]);
    let call = prop::sample::select(vec!["a", "b", "c", "d", ""]);
    let tool = prop::sample::select(vec!["read", "edit", "bash", "grep", "other"]);
    let one = (kind, call, tool, 0..400_u64, any::<bool>());
    prop::collection::vec(one, 0..40).prop_map(|all| {
        let make = |(n, (kind, call, tool, timestamp, is_error)): (
            usize,
            (&str, &str, &str, u64, bool),
        )| {
            let text = format!("content {n}");
            match kind {
                "use" => AgentOutput::ToolUse {
                    id: call.into(),
                    tool_name: tool.into(),
                    tool_input: json!({ "n": n }),
                    timestamp,
                },
                "result" => AgentOutput::ToolResult {
                    tool_use_id: call.into(),
                    tool_name: tool.into(),
                    result: json!(text),
                    is_error,
                    timestamp,
                },
                "text" => AgentOutput::Text { text, timestamp },
                _ => AgentOutput::Other { text, timestamp },
            }
        };
        all.into_iter().enumerate().map(make).collect()
    })
}

/// Returns the outputs in a message, by number: those of its texts and results, and of the inputs of its starts.
fn holds(message: &outrigger_protocol::merged::ConversationMessage) -> Vec<usize> {
    let number = |text: &str| text.strip_prefix("content ").and_then(|n| n.parse().ok());
    let input = message
        .metadata
        .get("input")
        .and_then(|input| input.get("n")?.as_u64());
    let output = message
        .metadata
        .get("output")
        .and_then(|output| number(output.as_str()?));
    let text = number(&message.content).filter(|_| output.is_none());
    let input = input.map(|n| usize::try_from(n).unwrap());
    [input, output, text].into_iter().flatten().collect()
}

/// The stored messages and parts after events.
#[derive(Clone, Default)]
struct Projection {
    infos: BTreeMap<String, MessageInfo>,
    parts: BTreeMap<(String, String), Part>,
}

impl Projection {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::MessageUpdated { info, .. } => {
                self.infos
                    .insert(info.id().0.clone(), info.as_ref().clone());
            }
            Event::PartUpdated { part, .. } => {
                let key = (part.message_id.0.clone(), part.id.0.clone());
                self.parts.insert(key, part.as_ref().clone());
            }
            Event::MessageRemoved { message_id, .. } => {
                self.infos.remove(message_id.as_str());
                self.parts
                    .retain(|(message, _), _| message != message_id.as_str());
            }
            Event::PartRemoved {
                message_id,
                part_id,
                ..
            } => {
                self.parts
                    .remove(&(message_id.0.clone(), part_id.0.clone()));
            }
            _ => {}
        }
    }

    /// Returns the conversation as read from the store.
    fn transcript(&self, form: Form) -> Transcript {
        let converter = Converter::default();
        let mut all = Transcript::default();
        let infos = self.infos.values().filter_map(Converter::info);
        let parts = self.parts.values().filter_map(|part| {
            let author = Author::from(self.infos.get(part.message_id.as_str())?);
            Some(converter.part(&author, part, form))
        });
        infos
            .chain(parts.flatten())
            .map(Change::Put)
            .for_each(|change| all.apply(change));
        all
    }

    fn follower(&self, form: Form) -> Conversation {
        let mut conversation = Conversation::new(form);
        self.infos
            .values()
            .for_each(|info| conversation.knows(info));
        conversation
    }
}

/// Returns the events of a turn, with some of its messages and parts removed at the end.
fn events(world: &World, removed: &[prop::sample::Index]) -> Vec<Event> {
    let mut events: Vec<Event> = world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Publish { event } => Some(event.clone()),
            _ => None,
        })
        .collect();
    for at in removed {
        if events.is_empty() {
            break;
        }
        let gone = match at.get(&events) {
            Event::PartUpdated {
                session_id, part, ..
            } => Event::PartRemoved {
                session_id: session_id.clone(),
                message_id: part.message_id.clone(),
                part_id: part.id.clone(),
            },
            Event::MessageUpdated { session_id, info } => Event::MessageRemoved {
                session_id: session_id.clone(),
                message_id: info.id().clone(),
            },
            _ => continue,
        };
        events.push(gone);
    }
    events
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn nothing_is_lost_doubled_or_put_out_of_order(outputs in outputs(), limit in 0..5_usize) {
        let mut parts = AgentParts::with_limit(limit);
        let mut written = Written::default();
        for output in &outputs {
            written.take(parts.on(output.clone()));
            prop_assert!(parts.open() <= limit, "memory is bounded");
        }
        written.take(parts.finish());
        prop_assert_eq!(parts.open(), 0);
        for form in [Form::Merged, Form::Apart] {
            let placed = written.placed(&Converter::default(), form);
            prop_assert!(placed.iter().all(|it| it.state == EntryState::Done));
            prop_assert!(placed.is_sorted_by(|a, b| a.key < b.key), "keys ascend");
            let mut held: Vec<usize> = placed.iter().flat_map(|it| holds(&it.message)).collect();
            if form == Form::Merged {
                // Everything except results with a start keeps its order.
                let first: Vec<usize> = placed.iter().filter_map(|it| holds(&it.message).first().copied()).collect();
                prop_assert!(first.is_sorted(), "{first:?}");
            }
            held.sort_unstable();
            prop_assert_eq!(held, (0..outputs.len()).collect::<Vec<_>>(), "each is there once");
        }
    }

    #[test]
    fn without_limits_every_result_after_a_start_finds_it(outputs in outputs()) {
        let mut parts = AgentParts::default();
        let mut written = Written::default();
        for output in &outputs {
            written.take(parts.on(output.clone()));
        }
        written.take(parts.finish());
        // The pairs, counted by hand: a start is open until its result or the next start of the call.
        let (mut open, mut pairs) = (BTreeSet::new(), 0);
        for output in &outputs {
            match output {
                AgentOutput::ToolUse { id, .. } => { open.insert(id); }
                AgentOutput::ToolResult { tool_use_id, .. } if open.remove(tool_use_id) => pairs += 1,
                _ => {}
            }
        }
        let placed = written.placed(&Converter::default(), Form::Merged);
        let merged = placed.iter().filter(|it| it.message.id.ends_with("-merged"));
        prop_assert_eq!(merged.count(), pairs);
    }

    /// E5: the live conversation and the stored one are equal after every event, wherever a reader starts to follow, and if it
    /// gets some events again.
    #[test]
    fn live_equals_rebuilt(
        script in script(),
        random in any::<u64>(),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        breaks in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 0..4),
    ) {
        let mut world = World::new(script, random);
        world.finish();
        let events = events(&world, &removed);
        for form in [Form::Merged, Form::Apart] {
            let mut stored = vec![Projection::default()];
            let (mut live, mut conversation) = (Transcript::default(), Conversation::new(form));
            for event in &events {
                conversation.on(event).into_iter().for_each(|change| live.apply(change));
                let mut next = stored[stored.len() - 1].clone();
                next.apply(event);
                prop_assert_eq!(&live, &next.transcript(form));
                stored.push(next);
            }
            for (at, again) in &breaks {
                // Reads the store up to there, and follows from slightly before.
                let at = at.index(stored.len());
                let mut late = stored[at].transcript(form);
                let mut conversation = stored[at].follower(form);
                for event in &events[at.saturating_sub(*again)..] {
                    conversation.on(event).into_iter().for_each(|change| late.apply(change));
                }
                prop_assert_eq!(&late, &live);
            }
            if removed.is_empty() {
                prop_assert!(live.iter().all(|it| it.state == EntryState::Done), "a turn that is over leaves nothing that runs");
                let calls = stored[stored.len() - 1].parts.values().filter(|part| part.kind.name() == "tool").count();
                let of = |kind: &str| live.iter().filter(|it| it.message.message_type == kind).count();
                let counts = match form {
                    Form::Merged => (of("tool_execution"), of("tool_use")),
                    Form::Apart => (of("tool_result"), of("tool_use") - calls),
                };
                prop_assert_eq!(counts, (calls, 0), "every call is one message, those that never ran, too");
            }
        }
    }
}
