//! A turn whose process is killed at any moment and taken over by another one.
//!
//! The law: the second process gives the result that one process would have given if the effects in progress had been reported as
//! interrupted, or requested again.

use std::collections::{BTreeMap, VecDeque};

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::turn::Effect;
use outrigger_kernel::turn::INTERRUPTED;
use outrigger_protocol::compaction::AutoCompact;
use outrigger_protocol::id::CallId;
use outrigger_protocol::message::NamedError;
use outrigger_protocol::model::Usage;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::{Begin, EffectId, Input, ModelSignal};
use proptest::prelude::*;

use crate::drive::{begin, known_tools};
use crate::script::{Request, Say, Script, script};
use crate::world::{Stored, World};

fn advance(script: Script, random: u64, steps: usize) -> World {
    let mut world = World::new(script, random);
    for _ in 0..steps {
        if world.is_done() || !world.advance() {
            break;
        }
    }
    world
}

fn harmless(call: &ToolCall) -> bool {
    call.tool == "invalid"
        || known_tools()
            .iter()
            .any(|tool| tool.name == call.tool && tool.read_only)
}

/// The same process continues, but the effects in progress end as after a kill.
fn interrupt(world: &mut World) {
    let pending: Vec<(u64, Effect)> = world
        .pending
        .iter()
        .filter(|(_, (_, rest))| !rest.is_empty())
        .map(|(id, (e, _))| (*id, e.clone()))
        .collect();
    let model = pending
        .iter()
        .find(|(_, effect)| matches!(effect, Effect::CallModel { .. }))
        .map(|(id, _)| *id);
    // The model had made a call in this step: then it is not called again.
    let called = model.is_some_and(|model| {
        world.log.iter().any(|(_, input, _)| {
            matches!(input, Input::Model { effect, signal: ModelSignal::ToolEnd { .. } } if effect.0 == model)
        })
    });
    // A turn that was stopped, or whose model failed for good, requests nothing new. The error of a request does not decide it:
    // one that was too long is followed by a compaction, and the turn continues.
    let aborted = world.effects.iter().any(|e| matches!(e, Effect::Abort));
    for (id, effect) in pending {
        let effect_id = EffectId(id);
        let input = match effect {
            // A turn that is about to end starts nothing again.
            Effect::RunTool { call, .. } if aborted || !harmless(&call) => {
                let started = world.log.iter().find_map(|(_, input, _)| match input {
                    Input::ToolStarted { effect, input, .. } if *effect == effect_id => {
                        Some(input.clone())
                    }
                    _ => None,
                });
                let outcome = ToolOutcome::Failed {
                    input: started.unwrap_or(call.input),
                    code: "tool.interrupted".into(),
                    message: INTERRUPTED.into(),
                    metadata: None,
                };
                Input::ToolDone {
                    effect: effect_id,
                    outcome,
                }
            }
            Effect::CallModel { .. } if aborted => Input::Model {
                effect: effect_id,
                signal: ModelSignal::Failed {
                    error: NamedError::new("MessageAbortedError", "stopped"),
                },
            },
            Effect::CallModel { .. } if called => {
                let signal = ModelSignal::Finished {
                    reason: "unknown".into(),
                    usage: Usage::default(),
                };
                Input::Model {
                    effect: effect_id,
                    signal,
                }
            }
            Effect::Hooks { point, .. }
                if point.name().starts_with("run.")
                    || point.name().starts_with("compaction.")
                    || (point == HookPoint::LlmAfterText
                        && (called || aborted || model.is_none())) =>
            {
                Input::HookDone {
                    effect: effect_id,
                    output: None,
                    block: None,
                    changed_by: vec![],
                }
            }
            // Requested again: as if nothing had happened.
            _ => continue,
        };
        world.pending.remove(&id);
        world.tell(input);
    }
}

fn runs(effects: &[Effect]) -> BTreeMap<CallId, (usize, bool)> {
    let mut runs = BTreeMap::new();
    for effect in effects {
        if let Effect::RunTool { call, .. } = effect {
            let entry = runs
                .entry(call.call_id.clone())
                .or_insert((0, harmless(call)));
            entry.0 += 1;
        }
    }
    runs
}

/// Returns what is stored of a turn that is killed after so many reports, and what the law requires.
fn killed_after(mut script: Script, random: [u64; 2], steps: usize) -> (Stored, Stored) {
    // A later one would arrive at another point.
    script.joins.retain(|at| *at < steps);
    let mut straight = advance(script.clone(), random[0], steps);
    let killed = advance(script, random[0], steps);

    let mut resumed = killed.killed(random[1]);
    resumed.finish();
    interrupt(&mut straight);
    straight.finish();
    (Stored::of(&resumed.effects), Stored::of(&straight.effects))
}

/// A request that was too long does not end a turn: a read-only call of a later step is repeated after a kill.
#[test]
fn a_call_after_a_compaction_is_made_again() {
    let request = |says: Vec<Say>, overflows| Request {
        says,
        fails: false,
        overflows,
        sent: 10,
    };
    let call = Say::Call {
        id: "a".into(),
        tool: "nosuch".into(),
        raw: "{}".into(),
        unfinished: false,
    };
    let summary = Say::Text {
        text: "what was said".into(),
        open: false,
    };
    let script = Script {
        begin: Begin {
            auto_compact: Some(AutoCompact {
                limit: None,
                used: 0,
            }),
            ..begin()
        },
        // The second is that of the summary.
        requests: vec![
            request(vec![], true),
            request(vec![summary], false),
            request(vec![call], false),
        ],
        block: None,
        obeys: false,
        joins: vec![],
    };
    let whole = advance(script.clone(), 1, usize::MAX).log.len();
    let mut kills_in_call = 0;
    for steps in 0..whole - 1 {
        let in_flight = advance(script.clone(), 1, steps).pending;
        let calls = |(effect, rest): &(Effect, VecDeque<Input>)| {
            matches!(effect, Effect::RunTool { .. }) && !rest.is_empty()
        };
        kills_in_call += usize::from(in_flight.values().any(calls));
        let (got, want) = killed_after(script.clone(), [1, 2], steps);
        assert_eq!(got.transcript(), want.transcript(), "after {steps}");
    }
    assert!(kills_in_call > 1, "{kills_in_call}");
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn a_killed_turn_ends_as_if_what_was_in_flight_had_been_interrupted(
        mut script in script(), random in any::<[u64; 2]>(), moment in any::<prop::sample::Index>(),
    ) {
        // A refusal by hooks, and obedience, would make the end depend on the order of outcomes; the law is about the kill.
        script.block = None;
        script.obeys = false;
        // So would a request that fails while a call waits for a snapshot or an answer.
        if script.requests.iter().any(|request| request.fails || request.overflows) {
            script.begin.snapshots = false;
            script.begin.asks_loops = false;
        }
        let whole = advance(script.clone(), random[0], usize::MAX);
        let steps = moment.index(whole.log.len() - 1);
        let (got, want) = killed_after(script, random, steps);
        prop_assert_eq!(got.transcript(), want.transcript());
        prop_assert!((got.cost - want.cost).abs() < 1e-12);
    }

    #[test]
    fn nothing_that_changes_the_world_is_done_twice(
        script in script(), random in any::<[u64; 2]>(), kills in prop::collection::vec(0..30_usize, 1..4), cancel in any::<bool>(),
    ) {
        let mut world = World::new(script, random[0]);
        let many = kills.len();
        for (n, steps) in kills.into_iter().enumerate() {
            for _ in 0..steps {
                if world.is_done() || !world.advance() {
                    break;
                }
            }
            if world.is_done() {
                break;
            }
            if cancel && n + 1 == many {
                world.tell(Input::Cancel);
            }
            world = world.killed(random[1].wrapping_add(n as u64));
        }
        world.finish();
        for (call, (times, harmless)) in runs(&world.effects) {
            prop_assert!(harmless || times == 1, "{call} ran {times} times");
        }
        for part in Stored::of(&world.effects).parts.values() {
            if let outrigger_protocol::message::PartKind::Tool(call) = &part.kind {
                prop_assert!(call.state.is_final());
            }
        }
    }
}
