//! Laws of the turn machine, for any model, tools and order of their answers.

use std::collections::BTreeSet;

use outrigger_kernel::digest;
use outrigger_kernel::turn::Effect;
use outrigger_kernel::turn::step;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, NamedError, PartKind};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::tool::ToolOutcome;
use outrigger_protocol::turn::{EffectId, Input, ModelSignal, TurnOutcome};
use proptest::prelude::*;
use serde_json::json;

use crate::drive::{failed, known_tools};
use crate::script::{Script, script};
use crate::world::{Stored, World};

/// Runs a script until it ends, cancelled after so many steps if it gets that far.
fn run(script: Script, random: u64, cancel: Option<usize>) -> World {
    let mut world = World::new(script, random);
    for _ in 0..cancel.unwrap_or(0) {
        if world.is_done() || !world.advance() {
            break;
        }
    }
    if cancel.is_some() {
        world.tell(Input::Cancel);
    }
    world.finish();
    world
}

fn cancel() -> impl Strategy<Value = Option<usize>> {
    prop::option::of(0..60_usize)
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn a_replay_of_the_stored_inputs_reaches_the_same_state(script in script(), random in any::<u64>(), cancel in cancel()) {
        let world = run(script, random, cancel);
        let mut turn = None;
        let mut replayed = vec![];
        for (at, input, recorded) in &world.log {
            let text = serde_json::to_string(input).unwrap();
            let stored: Input = serde_json::from_str(&text).unwrap();
            let effects = step(&mut turn, *at, stored);
            prop_assert_eq!(&digest::effects(&effects), recorded, "{}", text);
            // Effects survive serialisation too.
            let text = serde_json::to_string(&effects).unwrap();
            let back: Vec<Effect> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&digest::effects(&back), recorded, "{}", text);
            replayed.extend(effects);
        }
        prop_assert_eq!(turn, world.turn);
        prop_assert_eq!(replayed, world.effects);
    }

    #[test]
    fn what_does_not_fit_changes_nothing(script in script(), random in any::<u64>(), cancel in cancel()) {
        let mut world = run(script.clone(), random, cancel);
        let log = std::mem::take(&mut world.log);
        let mut turn = None;
        let mut inputs: Vec<Input> = vec![];
        for (at, input, _) in log {
            step(&mut turn, at, input.clone());
            inputs.push(input);
            let before = turn.clone();
            let open = before.as_ref().unwrap().open_effects();
            let unknown = EffectId(9999);
            let mut strays = vec![
                Input::Begin(Box::new(script.begin.clone())),
                Input::HookDone { effect: unknown, output: Some(json!({"text": "x", "parts": []})), block: None, changed_by: vec![] },
                Input::ToolsReady { effect: unknown, tools: known_tools() },
                Input::Model { effect: unknown, signal: ModelSignal::Started },
                Input::ToolStarted { effect: unknown, input: json!({}), provenance: outrigger_protocol::provenance::Provenance::default() },
                Input::ToolDone { effect: unknown, outcome: failed("tool.failed", "late") },
            ];
            // Outcomes that were fed before, of effects that have ended; and outcomes of another kind.
            let ended = |input: &&Input| effect_of(input).is_some_and(|effect| !open.contains(&effect));
            strays.extend(inputs.iter().rev().filter(ended).take(3).cloned());
            for effect in &open {
                strays.extend(misfits(before.as_ref().unwrap(), *effect, &world.effects));
            }
            for stray in strays {
                let text = format!("{stray:?}");
                let effects = step(&mut turn, at + 1, stray);
                prop_assert!(effects.is_empty(), "{text}");
                prop_assert_eq!(&turn, &before, "{}", text);
            }
        }
    }

    #[test]
    fn a_turn_ends_and_leaves_nothing_open(script in script(), random in any::<u64>(), cancel in cancel()) {
        let max_steps = script.begin.max_steps;
        let no_reply = script.begin.no_reply;
        let overflows = script.requests.iter().any(|request| request.overflows);
        let world = run(script, random, cancel);
        // A prompt that arrived meanwhile is answered here or handed to another turn: none is lost.
        let turn = world.turn.as_ref().unwrap();
        let left = turn.joined().len();
        let refused = world.log.iter().any(|(_, input, _)| matches!(
            input, Input::ToolDone { outcome: ToolOutcome::Failed { code, .. }, .. } if code == "tool.rejected"
        ));
        if let Some(Effect::Finish { outcome: TurnOutcome::Done { .. } }) = world.effects.last() {
            prop_assert!(left == 0 || no_reply || refused || turn.current_step() >= max_steps);
        }
        let finishes = world.effects.iter().filter(|e| matches!(e, Effect::Finish { .. })).count();
        prop_assert_eq!(finishes, 1);
        let Some(Effect::Finish { outcome }) = world.effects.last() else { panic!("the end is not the end") };
        let requests = world.effects.iter().filter(|e| matches!(e, Effect::CallModel { .. })).count();
        prop_assert!(requests <= usize::try_from(max_steps).unwrap());
        prop_assert!(world.turn.as_ref().unwrap().open_effects().is_empty());

        let stored = Stored::of(&world.effects);
        for part in stored.parts.values() {
            match &part.kind {
                PartKind::Tool(call) => prop_assert!(call.state.is_final(), "{part:?}"),
                PartKind::Text(text) => if let Some(time) = &text.time {
                    prop_assert!(time.end.is_some(), "{part:?}");
                },
                PartKind::Reasoning(thought) => prop_assert!(thought.time.end.is_some(), "{part:?}"),
                _ => {}
            }
        }
        let mut cost = 0.0;
        for message in stored.messages.values() {
            if let MessageInfo::Assistant(message) = message {
                prop_assert!(message.time.completed.is_some());
                let refused = stored.parts.values().all(|part| part.message_id != message.id);
                // A step whose request was refused as too long ends without content; a summary replaces it.
                prop_assert!(message.finish.is_some() || message.error.is_some() || refused || overflows);
                cost += message.cost;
            }
        }
        prop_assert!((cost - stored.cost).abs() < 1e-12, "messages cost {cost}, the session {}", stored.cost);

        let mut calls = BTreeSet::new();
        for effect in &world.effects {
            if let Effect::RunTool { call, .. } = effect {
                prop_assert!(!call.call_id.as_str().is_empty() && call.call_id.as_str() != "used");
                prop_assert!(calls.insert(call.call_id.clone()), "{call:?} is made twice");
            }
        }
        let stored_only = no_reply && *outcome == TurnOutcome::Done { message_id: None };
        let idle = |e: &&Effect| matches!(e, Effect::Publish { event: Event::SessionIdle { .. } });
        prop_assert_eq!(world.effects.iter().filter(idle).count(), usize::from(!stored_only));
        let last = world.effects.iter().rev().find_map(|e| match e {
            Effect::Publish { event: Event::SessionStatus { status, .. } } => Some(status.clone()),
            _ => None,
        });
        prop_assert!(last.is_none_or(|status| status == SessionStatus::Idle));
    }
}

fn effect_of(input: &Input) -> Option<EffectId> {
    match input {
        Input::HookDone { effect, .. }
        | Input::ToolsReady { effect, .. }
        | Input::CompactionPlanned { effect, .. }
        | Input::CompactionRefused { effect, .. }
        | Input::Model { effect, .. }
        | Input::ToolStarted { effect, .. }
        | Input::ToolProgress { effect, .. }
        | Input::FilesTracked { effect, .. }
        | Input::LoopAnswered { effect, .. }
        | Input::ToolDone { effect, .. } => Some(*effect),
        Input::Begin(_)
        | Input::Compact { .. }
        | Input::Joined { .. }
        | Input::EndAfterStep
        | Input::CallsUsed { .. }
        | Input::Left { .. }
        | Input::Cancel
        | Input::Resumed => None,
    }
}

/// Returns outcomes of other kinds under the number of an open effect.
fn misfits(
    turn: &outrigger_kernel::turn::Turn,
    effect: EffectId,
    effects: &[Effect],
) -> Vec<Input> {
    assert!(turn.open_effects().contains(&effect));
    let hooks = effects
        .iter()
        .any(|e| matches!(e, Effect::Hooks { effect: id, .. } if *id == effect));
    let tools = effects
        .iter()
        .any(|e| matches!(e, Effect::PrepareTools { effect: id, .. } if *id == effect));
    let model = effects
        .iter()
        .any(|e| matches!(e, Effect::CallModel { effect: id, .. } if *id == effect));
    let tool = effects
        .iter()
        .any(|e| matches!(e, Effect::RunTool { effect: id, .. } if *id == effect));
    let mut strays = vec![];
    if !hooks {
        strays.push(Input::HookDone {
            effect,
            output: None,
            block: None,
            changed_by: vec![],
        });
    }
    if !tools {
        strays.push(Input::ToolsReady {
            effect,
            tools: vec![],
        });
    }
    if !effects
        .iter()
        .any(|e| matches!(e, Effect::PrepareCompaction { effect: id, .. } if *id == effect))
    {
        strays.push(Input::CompactionPlanned {
            effect,
            plan: Box::default(),
        });
        strays.push(Input::CompactionRefused {
            effect,
            error: NamedError::new("E", "no"),
        });
    }
    if !model {
        strays.push(Input::Model {
            effect,
            signal: ModelSignal::Started,
        });
    }
    if !tool {
        strays.push(Input::ToolStarted {
            effect,
            input: json!({}),
            provenance: outrigger_protocol::provenance::Provenance::default(),
        });
        strays.push(Input::ToolProgress {
            effect,
            title: None,
            metadata: json!({}),
        });
        strays.push(Input::ToolDone {
            effect,
            outcome: failed("tool.failed", "not yours"),
        });
    }
    strays
}
