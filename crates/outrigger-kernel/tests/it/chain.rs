//! Folding of failures, refusals and out-of-order outcomes (C2, C5).

use outrigger_kernel::hooks::{Chain, Folded, Handler, HookPoint, Next, Rights};
use outrigger_protocol::hook::{Block, Change, Decision, HookFailure, HookOutcome, Key};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

pub(crate) fn at(name: &str) -> HookPoint {
    HookPoint::parse(name).unwrap()
}

pub(crate) fn handler(n: u32, process: u64) -> Handler {
    Handler {
        plugin: PluginId(format!("p{n}")),
        instance: 0,
        process,
        priority: 0,
        order: n,
        fail_closed: false,
        rights: Rights::ALL,
    }
}

pub(crate) fn payload(output: Value) -> HookPayload {
    HookPayload::new(json!({}), output)
}

pub(crate) fn change(path: &[&str], value: Option<Value>) -> Change {
    Change {
        path: path
            .iter()
            .map(|key| Key::Name((*key).to_owned()))
            .collect(),
        value,
    }
}

fn answered(changes: Vec<Change>) -> HookOutcome {
    HookOutcome::patch(vec![changes])
}

pub(crate) fn folded(chain: &Chain) -> Folded {
    match chain.next() {
        Next::Done(folded) => folded,
        Next::Call(call) => panic!("still to call: {call:?}"),
    }
}

fn three(point: &str, fail_closed: bool) -> Chain {
    let mut all: Vec<Handler> = (0..3).map(|n| handler(n, 1)).collect();
    all[1].fail_closed = fail_closed;
    Chain::new(
        at(point),
        all,
        vec![payload(json!({"args": {"n": 0}, "options": {}}))],
    )
}

/// The middle one of three neighbours in one process ends this way: what the third sees, and what is
/// recorded.
#[test]
fn failures_by_table() {
    let threw = || {
        HookOutcome::Failed(HookFailure::Threw {
            message: "boom".into(),
        })
    };
    let late = || HookOutcome::Failed(HookFailure::TimedOut { ms: 5000 });
    let lost = || {
        HookOutcome::Failed(HookFailure::Lost {
            message: "process ended".into(),
        })
    };
    let skipped = || {
        HookOutcome::Failed(HookFailure::Skipped {
            reason: "breaker open".into(),
        })
    };
    let refused = || {
        HookOutcome::Block(Block {
            code: "policy.no".into(),
            message: "no".into(),
            details: json!({"a": 1}),
            plugin: None,
        })
    };
    let (open, closed) = (false, true);
    for (point, fail_closed, outcome, decision, code) in [
        (
            "llm.before_params",
            open,
            threw(),
            Decision::FailedOpen,
            None,
        ),
        (
            "llm.before_params",
            open,
            late(),
            Decision::FailedOpen,
            None,
        ),
        (
            "llm.before_params",
            open,
            lost(),
            Decision::FailedOpen,
            None,
        ),
        (
            "llm.before_params",
            open,
            skipped(),
            Decision::Skipped,
            None,
        ),
        (
            "llm.before_params",
            open,
            refused(),
            Decision::Refused,
            None,
        ),
        (
            "llm.before_params",
            closed,
            threw(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "llm.before_params",
            closed,
            late(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "llm.before_params",
            closed,
            lost(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "llm.before_params",
            closed,
            skipped(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "tool.before_call",
            open,
            threw(),
            Decision::Block,
            Some("hook.threw"),
        ),
        ("tool.before_call", open, late(), Decision::FailedOpen, None),
        ("tool.before_call", open, lost(), Decision::FailedOpen, None),
        (
            "tool.before_call",
            open,
            refused(),
            Decision::Block,
            Some("policy.no"),
        ),
        (
            "tool.before_call",
            closed,
            threw(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "tool.before_call",
            closed,
            late(),
            Decision::FailedClosed,
            Some("hook.failed_closed"),
        ),
        (
            "tool.after_result",
            open,
            threw(),
            Decision::Block,
            Some("hook.threw"),
        ),
        (
            "execute.before_shell",
            open,
            threw(),
            Decision::Block,
            Some("hook.threw"),
        ),
        (
            "run.before_start",
            open,
            threw(),
            Decision::FailedOpen,
            None,
        ),
        (
            "run.before_start",
            open,
            refused(),
            Decision::Block,
            Some("policy.no"),
        ),
    ] {
        let label = format!("{point} fail_closed={fail_closed} {outcome:?}");
        let mut chain = three(point, fail_closed);
        // A security-critical one is called after all others.
        let culprit = if fail_closed { 2 } else { 1 };
        for handler in 0..culprit {
            chain.feed(handler, HookOutcome::Continue, 1.0);
        }
        chain.feed(culprit, outcome.clone(), 2.0);
        assert_eq!(folded_or_next(&chain), code.is_some(), "{label}");
        if code.is_none() {
            // The chain continues after the culprit, in a new call, with the output from before it.
            let Next::Call(call) = chain.next() else {
                panic!("{label}")
            };
            assert_eq!(call.handlers, [2], "{label}");
            assert_eq!(
                call.items[0].output,
                json!({"args": {"n": 0}, "options": {}}),
                "{label}"
            );
            chain.feed(2, HookOutcome::Continue, 3.0);
        }
        let end = folded(&chain);
        assert_eq!(end.block.as_ref().map(|b| b.code.as_str()), code, "{label}");
        assert_eq!(
            end.runs.len(),
            if code.is_some() { culprit + 1 } else { 3 },
            "{label}"
        );
        let run = &end.runs[culprit];
        assert_eq!(
            (run.handler, run.outcome, run.decision, run.ms),
            (culprit, outcome.kind(), decision, 2.0),
            "{label}"
        );
        assert!(
            run.message.as_ref().is_some_and(|m| !m.is_empty()),
            "{label}"
        );
    }
}

fn folded_or_next(chain: &Chain) -> bool {
    matches!(chain.next(), Next::Done(_))
}

#[test]
fn a_refusal_keeps_what_was_changed_before_it_and_its_details() {
    let mut chain = three("tool.before_call", false);
    chain.feed(
        0,
        answered(vec![change(&["args", "n"], Some(json!(1)))]),
        1.0,
    );
    let block = Block {
        code: "policy.no".into(),
        message: "no".into(),
        details: json!({"rule": 7}),
        plugin: None,
    };
    chain.feed(1, HookOutcome::Block(block.clone()), 1.0);
    chain.feed(
        2,
        answered(vec![change(&["args", "n"], Some(json!(3)))]),
        1.0,
    );
    let end = folded(&chain);
    assert_eq!(end.outputs[0]["args"], json!({"n": 1}));
    assert_eq!(end.block, Some(block));
    assert_eq!(end.runs.len(), 2);
}

#[test]
fn outcomes_out_of_turn_change_nothing() {
    let mut chain = three("tool.before_call", false);
    let set = |n: i64| answered(vec![change(&["args", "n"], Some(json!(n)))]);
    chain.feed(1, set(9), 1.0);
    chain.feed(7, set(9), 1.0);
    chain.feed(0, set(1), 1.0);
    chain.feed(0, set(9), 1.0);
    chain.feed(
        2,
        HookOutcome::Failed(HookFailure::Threw {
            message: "too early".into(),
        }),
        1.0,
    );
    chain.feed(1, set(2), 1.0);
    chain.feed(2, set(3), 1.0);
    chain.feed(3, set(9), 1.0);
    chain.feed(2, set(9), 1.0);
    let end = folded(&chain);
    assert_eq!(end.outputs[0]["args"], json!({"n": 3}));
    assert_eq!(
        end.runs.iter().map(|r| r.handler).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(end.runs[2].changed, ["/args/n"]);
}

#[test]
fn neighbours_in_one_process_are_one_call_and_asking_again_changes_nothing() {
    let all = [(0, 1), (1, 1), (2, 2), (3, 1)]
        .map(|(n, process)| handler(n, process))
        .to_vec();
    let mut chain = Chain::new(
        at("llm.before_params"),
        all,
        vec![payload(json!({"options": {}}))],
    );
    let mut calls = Vec::new();
    while let Next::Call(call) = chain.next() {
        assert_eq!(chain.next(), Next::Call(call.clone()));
        calls.push(call.handlers.clone());
        for index in call.handlers {
            chain.feed(index, HookOutcome::Continue, 0.0);
        }
    }
    assert_eq!(calls, [vec![0, 1], vec![2], vec![3]]);
}

#[test]
fn a_chain_without_handlers_gives_back_what_came_in() {
    for point in HookPoint::ALL {
        let chain = Chain::new(
            *point,
            vec![],
            vec![payload(json!({"x": 1})), payload(json!([]))],
        );
        let end = folded(&chain);
        assert_eq!(
            (end.outputs, end.block, end.runs.len()),
            (vec![json!({"x": 1}), json!([])], None, 0)
        );
    }
}
