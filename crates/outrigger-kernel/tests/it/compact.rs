//! Compaction in the turn machine: when it starts, in which order, and how it ends.

use insta::assert_snapshot;
use outrigger_kernel::turn::Effect;
use outrigger_protocol::compaction::{AutoCompact, CompactRequest, CompactionPlan, Replay};
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, ModelRef, NamedError, PartKind};
use outrigger_protocol::turn::{Begin, Input, ModelSignal};
use serde_json::{Value, json};

use crate::drive::{Drive, begin, text_input};

fn auto(limit: u64, used: u64) -> Begin {
    let auto_compact = Some(AutoCompact {
        limit: Some(limit),
        used,
    });
    Begin {
        auto_compact,
        ..begin()
    }
}

fn asked(auto: bool) -> Begin {
    Begin {
        compact: Some(CompactRequest {
            auto,
            instructions: None,
        }),
        ..begin()
    }
}

fn plan() -> CompactionPlan {
    CompactionPlan {
        model: ModelRef {
            provider_id: "p".into(),
            model_id: "sums".into(),
            variant: None,
        },
        prices: [100.0, 0.0, 0.0, 0.0].into(),
        ..CompactionPlan::default()
    }
}

/// Calls the model for the summary.
fn summarise(drive: &mut Drive) {
    drive.planned(plan());
    drive.prepare();
    drive.started();
    drive.text(0, "All of it.");
    drive.finished("stop");
}

fn overflowed(drive: &mut Drive) {
    drive.model(ModelSignal::Failed {
        error: NamedError::new("ContextOverflowError", "too long"),
    });
}

#[test]
fn on_demand() {
    let mut drive = Drive::new(asked(false));
    summarise(&mut drive);
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < begin
    user
    part compaction {"auto":false}
    session
    busy
    #1 plan
    < #1 planned
    #2 hooks compaction.before_start
    < #2 done
    #3 hooks llm.before_messages
    < #3 done
    summary
    busy
    #4 hooks llm.before_system
    < #4 done
    #5 hooks llm.before_params
    < #5 done
    #6 hooks llm.before_headers
    < #6 done
    #7 model, step 1
    < #7 started
    part step-start
    < #7 text_start
    part text ""
    < #7 text_end
    #8 hooks llm.after_text
    < #8 done
    part text "All of it." end
    < #7 finished
    part step-finish stop
    summary finish=stop
    summary finish=stop completed
    session.compacted
    busy
    idle
    session.idle
    session used=10+2 cost=0.001 diff
    finish: done
    "#);
}

#[test]
fn behind_a_step_that_filled_the_context() {
    let mut drive = Drive::asked(auto(100, 0));
    drive.started();
    drive.call("c", "read", "{}");
    drive.tool_started("read");
    drive.tool_completed("read", "x");
    drive.seen();
    drive.finished_with("tool-calls", 98);
    drive.planned(CompactionPlan {
        tail_start: Some("msg_tail".into()),
        ..plan()
    });
    drive.prepare();
    drive.started();
    drive.text(0, "All of it.");
    drive.finished("stop");
    assert_snapshot!(drive.seen(), @r#"
    < #7 finished
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    user
    part compaction {"auto":true,"overflow":false}
    busy
    #9 plan
    < #9 planned
    #10 hooks compaction.before_start
    < #10 done
    #11 hooks llm.before_messages
    < #11 done
    summary
    session used=98+2 cost=0.000102 diff
    busy
    #12 hooks llm.before_system
    < #12 done
    #13 hooks llm.before_params
    < #13 done
    #14 hooks llm.before_headers
    < #14 done
    #15 model, step 2
    < #15 started
    part step-start
    < #15 text_start
    part text ""
    < #15 text_end
    #16 hooks llm.after_text
    < #16 done
    part text "All of it." end
    < #15 finished
    user
    part step-finish stop
    summary finish=stop
    summary finish=stop completed
    part compaction {"auto":true,"overflow":false,"tail_start_id":"msg_tail"}
    #17 hooks compaction.after_finish
    "#);
    drive.prepare();
    let model = drive
        .turn
        .as_ref()
        .unwrap()
        .message()
        .unwrap()
        .model_id
        .clone();
    assert_eq!(model, "m", "the answer is the conversation's model's again");
}

#[test]
fn before_the_first_step() {
    let mut drive = Drive::new(auto(100, 100));
    drive.hook();
    assert_snapshot!(drive.seen(), @r#"
    < begin
    session agent
    #1 hooks run.before_start
    < #1 done
    user
    part text "hi"
    session
    busy
    user
    part compaction {"auto":true}
    busy
    #2 plan
    "#);
}

#[test]
fn behind_a_request_that_was_too_long() {
    let mut drive = Drive::asked(auto(100, 0));
    overflowed(&mut drive);
    let replay = Replay {
        parts: vec![text_input("again")],
        ..Replay::default()
    };
    drive.planned(CompactionPlan {
        replay: Some(Box::new(replay)),
        ..plan()
    });
    drive.prepare();
    drive.started();
    drive.text(0, "All of it.");
    drive.finished("stop");
    assert_snapshot!(drive.seen(), @r#"
    < #7 failed
    session.error ContextOverflowError: too long
    assistant completed
    user
    part compaction {"auto":true,"overflow":true}
    busy
    #8 plan overflow
    < #8 planned
    #9 hooks compaction.before_start
    < #9 done
    #10 hooks llm.before_messages
    < #10 done
    summary
    busy
    #11 hooks llm.before_system
    < #11 done
    #12 hooks llm.before_params
    < #12 done
    #13 hooks llm.before_headers
    < #13 done
    #14 model, step 2
    < #14 started
    part step-start
    < #14 text_start
    part text ""
    < #14 text_end
    #15 hooks llm.after_text
    < #15 done
    part text "All of it." end
    < #14 finished
    user
    part step-finish stop
    summary finish=stop
    summary finish=stop completed
    user
    part text "again"
    session.compacted
    busy
    assistant
    session used=10+2 cost=0.001 diff
    #16 tools of step 3
    "#);
    // Too long again, right after the summary: another one would not help.
    drive.prepare();
    drive.seen();
    overflowed(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #21 failed
    session.error ContextOverflowError: too long
    assistant error=ContextOverflowError completed
    idle
    session.idle
    finish: failed ContextOverflowError: too long
    "#);
}

#[test]
fn asked_for_while_a_tool_runs() {
    let mut drive = Drive::asked(begin());
    drive.started();
    drive.call("c", "read", "{}");
    drive.tool_started("read");
    drive.seen();
    drive.take(Input::Compact {
        auto: true,
        model: None,
        instructions: None,
    });
    assert!(drive.turn.as_ref().unwrap().has_asked_compaction());
    drive.tool_completed("read", "x");
    drive.finished("tool-calls");
    summarise(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < compact auto=true
    user
    part compaction {"auto":true}
    < #8 completed
    part tool read c completed {} "x"
    < #7 finished
    part step-finish tool-calls
    assistant finish=tool-calls
    assistant finish=tool-calls completed
    busy
    #9 plan
    < #9 planned
    #10 hooks compaction.before_start
    < #10 done
    #11 hooks llm.before_messages
    < #11 done
    summary
    session used=10+2 cost=0.000014 diff
    busy
    #12 hooks llm.before_system
    < #12 done
    #13 hooks llm.before_params
    < #13 done
    #14 hooks llm.before_headers
    < #14 done
    #15 model, step 2
    < #15 started
    part step-start
    < #15 text_start
    part text ""
    < #15 text_end
    #16 hooks llm.after_text
    < #16 done
    part text "All of it." end
    < #15 finished
    user
    part step-finish stop
    summary finish=stop
    summary finish=stop completed
    #17 hooks compaction.after_finish
    "#);
}

#[test]
fn when_it_begins_by_itself() {
    let begins = |begin: Begin, sent: u64| {
        let mut drive = Drive::asked(begin);
        drive.started();
        drive.call("c", "read", "{}");
        drive.tool_started("read");
        drive.tool_completed("read", "x");
        drive.finished_with("tool-calls", sent);
        drive
            .effects
            .iter()
            .any(|e| matches!(e, Effect::PrepareCompaction { .. }))
    };
    let unknown = AutoCompact::default();
    for (name, begin, sent, want) in [
        ("below", auto(100, 0), 97, false),
        ("at the limit", auto(100, 0), 98, true),
        ("off", begin(), 1000, false),
        (
            "limits are not known",
            Begin {
                auto_compact: Some(unknown),
                ..begin()
            },
            1000,
            false,
        ),
        (
            "no steps are left for it and for going on",
            Begin {
                max_steps: 2,
                ..auto(100, 0)
            },
            1000,
            false,
        ),
    ] {
        assert_eq!(begins(begin, sent), want, "{name}");
    }
}

#[test]
fn a_refusal_of_the_length_ends_the_turn_where_compaction_is_off() {
    let mut drive = Drive::asked(begin());
    drive.seen();
    overflowed(&mut drive);
    assert!(drive.is_done());
    assert!(
        drive
            .seen()
            .ends_with("finish: failed ContextOverflowError: too long")
    );
}

#[test]
fn hooks_say_what_is_in_the_prompt_and_whether_it_goes_on() {
    let mut drive = Drive::new(asked(true));
    drive.planned(plan());
    drive.hook_with(json!({ "context": ["one", 2, "three"], "prompt": "Only files." }));
    let compaction = drive.turn.as_ref().unwrap().compaction().unwrap();
    assert_eq!(compaction.context(), ["one", "three"]);
    assert_eq!(compaction.prompt(), Some("Only files."));
    assert_eq!(compaction.model().unwrap().model_id, "sums");
    drive.prepare();
    drive.started();
    drive.text(0, "All of it.");
    drive.finished("stop");
    drive.seen();
    drive.hook_with(json!({ "enabled": false }));
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < #9 done
    session.compacted
    busy
    idle
    session.idle
    session used=10+2 cost=0.001 diff
    finish: done
    "#);
}

/// An automatic compaction is postponed, and the turn continues from where it was; a requested one, or one without which
/// no request fits, fails. Neither leaves a message.
#[test]
fn what_a_hook_refuses_leaves_the_history_as_it_is() {
    let refused = |drive: &mut Drive| {
        drive.planned(plan());
        drive.seen();
        drive.block("not now");
    };
    let mut drive = Drive::asked(auto(100, 0));
    drive.started();
    drive.call("c", "read", "{}");
    drive.tool_started("read");
    drive.tool_completed("read", "x");
    drive.finished_with("tool-calls", 98);
    refused(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #10 blocks
    message.removed
    busy
    assistant
    session used=98+2 cost=0.000102 diff
    #11 tools of step 2
    "#);
    drive.prepare();
    drive.started();
    drive.text(0, "Found.");
    drive.seen();
    // Even with a full context no second compaction starts at once.
    drive.finished_with("stop", 98);
    assert_snapshot!(drive.seen(), @r#"
    < #16 finished
    user summary
    part step-finish stop
    assistant finish=stop
    assistant finish=stop completed
    busy
    idle
    session.idle
    session used=98+2 cost=0.000102 diff
    finish: done
    "#);
    assert!(drive.is_done());

    let mut drive = Drive::new(auto(100, 100));
    drive.hook();
    refused(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #3 blocks
    message.removed
    busy
    assistant
    session
    #4 tools of step 1
    "#);
    assert!(!drive.is_done());

    let mut drive = Drive::asked(auto(100, 0));
    drive.started();
    drive.text(0, "Done.");
    drive.finished_with("stop", 98);
    refused(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #10 blocks
    message.removed
    busy
    idle
    session.idle
    session used=98+2 cost=0.000102 diff
    finish: done
    "#);
    assert!(drive.is_done());

    let mut drive = Drive::new(asked(false));
    refused(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #2 blocks
    message.removed
    session.error HookBlockedError: not now
    idle
    session.idle
    finish: failed HookBlockedError: not now
    "#);
    assert!(drive.is_done());

    let mut drive = Drive::asked(auto(100, 0));
    overflowed(&mut drive);
    refused(&mut drive);
    assert_snapshot!(drive.seen(), @r#"
    < #9 blocks
    message.removed
    session.error HookBlockedError: not now
    idle
    session.idle
    finish: failed HookBlockedError: not now
    "#);
    assert!(drive.is_done());
}

/// Every way in which there is no summary: the turn fails, and the message says why.
#[test]
fn without_a_summary_the_turn_fails() {
    type Way = (&'static str, fn(&mut Drive), &'static str);
    let ways: [Way; 4] = [
        (
            "empty",
            |drive| {
                drive.text(0, " ");
                drive.finished("stop");
            },
            "compaction.empty",
        ),
        ("too long", overflowed, "compaction.overflow"),
        (
            "a call",
            |drive| {
                drive.call("c", "read", "{}");
                drive.model_failed();
            },
            "compaction.tool_call",
        ),
        ("refused", Drive::model_failed, ""),
    ];
    for (name, way, code) in ways {
        let mut drive = Drive::new(asked(true));
        drive.planned(plan());
        drive.prepare();
        drive.started();
        way(&mut drive);
        assert!(drive.is_done(), "{name}");
        let seen = drive.seen();
        assert!(seen.contains("finish: failed"), "{name}: {seen}");
        assert!(!seen.contains("session.compacted"), "{name}: {seen}");
        let error = drive.effects.iter().rev().find_map(|effect| match effect {
            Effect::Publish {
                event: Event::MessageUpdated { info, .. },
            } => match info.as_ref() {
                MessageInfo::Assistant(message) => message.error.clone(),
                MessageInfo::User(_) => None,
            },
            _ => None,
        });
        let got = error.unwrap().data.get("code").cloned().unwrap_or_default();
        assert_eq!(got.as_str().unwrap_or_default(), code, "{name}");
    }

    let mut drive = Drive::new(asked(true));
    let effect = drive.planning();
    drive.take(Input::CompactionRefused {
        effect,
        error: NamedError::new("UnknownError", "nothing there"),
    });
    assert!(drive.is_done());
    assert!(
        drive
            .seen()
            .ends_with("finish: failed UnknownError: nothing there")
    );
}

#[test]
fn cancelled_at_any_moment_it_ends() {
    for moment in 0..12 {
        let mut drive = Drive::new(asked(true));
        let steps: [fn(&mut Drive); 11] = [
            |d| d.planned(plan()),
            |d| assert!(d.hook()),
            |d| assert!(d.hook()),
            |d| assert!(d.hook()),
            |d| assert!(d.hook()),
            |d| assert!(d.hook()),
            Drive::started,
            |d| d.model(ModelSignal::TextStart { index: 0 }),
            |d| {
                d.model(ModelSignal::TextEnd {
                    index: 0,
                    text: "All.".into(),
                })
            },
            |d| assert!(d.hook()),
            |d| d.finished("stop"),
        ];
        for step in steps.into_iter().take(moment) {
            step(&mut drive);
        }
        drive.cancel();
        // Open effects report as they do when stopped.
        if drive.turn.as_ref().unwrap().is_done() {
            continue;
        }
        for effect in drive.turn.as_ref().unwrap().open_effects() {
            for input in [
                Input::HookDone {
                    effect,
                    output: None,
                    block: None,
                    changed_by: vec![],
                },
                Input::CompactionPlanned {
                    effect,
                    plan: Box::new(plan()),
                },
                Input::Model {
                    effect,
                    signal: ModelSignal::Failed {
                        error: NamedError::new("MessageAbortedError", "stopped"),
                    },
                },
            ] {
                if !drive.is_done() {
                    drive.take(input);
                }
            }
        }
        assert!(drive.is_done(), "moment {moment}: {}", drive.seen());
        assert!(
            drive.seen().ends_with("finish: cancelled"),
            "moment {moment}"
        );
    }
}

#[test]
fn a_killed_compaction_is_made_again_in_the_same_message() {
    let mut drive = Drive::new(asked(false));
    drive.planned(plan());
    drive.prepare();
    drive.started();
    drive.model(ModelSignal::TextStart { index: 0 });
    drive.seen();
    drive.resume();
    summarise(&mut drive);
    assert!(drive.is_done());
    assert_snapshot!(drive.seen(), @r#"
    < resumed
    message.part.removed
    message.part.removed
    #8 plan
    < #8 planned
    #9 hooks llm.before_messages
    < #9 done
    busy
    #10 hooks llm.before_system
    < #10 done
    #11 hooks llm.before_params
    < #11 done
    #12 hooks llm.before_headers
    < #12 done
    #13 model, step 1
    < #13 started
    part step-start
    < #13 text_start
    part text ""
    < #13 text_end
    #14 hooks llm.after_text
    < #14 done
    part text "All of it." end
    < #13 finished
    part step-finish stop
    summary finish=stop
    summary finish=stop completed
    session.compacted
    busy
    idle
    session.idle
    session used=10+2 cost=0.001 diff
    finish: done
    "#);
    let chains: Vec<&str> = drive
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Hooks { point, .. } if point.name().starts_with("compaction.") => {
                Some(point.name())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        chains,
        ["compaction.before_start"],
        "a hook call is never repeated"
    );
}

#[test]
fn the_summary_is_paid_for_at_its_own_price() {
    let mut drive = Drive::new(asked(false));
    summarise(&mut drive);
    let cost: f64 = drive
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::PatchSession { patch } => patch.cost,
            _ => 0.0,
        })
        .sum();
    assert!((cost - 0.001).abs() < 1e-12, "{cost}");
    let parts = drive.effects.iter().filter_map(|effect| match effect {
        Effect::Publish {
            event: Event::PartUpdated { part, .. },
        } => Some(part),
        _ => None,
    });
    let compaction: Vec<Value> = parts
        .filter_map(|part| match &part.kind {
            PartKind::Compaction(body) => Some(Value::Object(body.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(compaction, [json!({ "auto": false })]);
}

/// What the model read before a summary is gone, so reading it again is not a loop.
#[test]
fn calls_before_a_summary_are_no_part_of_a_loop() {
    let mut drive = Drive::asked(Begin {
        asks_loops: true,
        ..auto(100, 0)
    });
    let read = |drive: &mut Drive, id: &str, sent: u64| {
        drive.started();
        drive.call(id, "read", "{}");
        drive.tool_started("read");
        drive.tool_completed("read", "x");
        drive.finished_with("tool-calls", sent);
    };
    read(&mut drive, "a", 10);
    drive.prepare();
    read(&mut drive, "b", 98);
    summarise(&mut drive);
    drive.prepare();
    read(&mut drive, "c", 10);
    assert!(
        !drive
            .effects
            .iter()
            .any(|e| matches!(e, Effect::AskLoop { .. }))
    );
}
