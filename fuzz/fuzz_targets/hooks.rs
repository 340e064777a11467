//! Answers of hooks, folded by the kernel's chain: whatever plugins answer, nothing that a point does not allow comes out,
//! and the guarded places are as they were.
//!
//! The input: one byte picks the point, then lines: the output's JSON, and for each handler the frame of its result, or nothing
//! for one that is late.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_kernel::guard;
use outrigger_kernel::hooks::{Chain, Handler, HookPoint, Next, Rights};
use outrigger_protocol::hook::{HookFailure, HookOutcome};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::rpc::HookResult;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((&pick, rest)) = data.split_first() else {
        return;
    };
    let point = HookPoint::ALL[usize::from(pick) % HookPoint::ALL.len()];
    let mut lines = rest.split(|byte| *byte == b'\n');
    let Some(Ok(output)) = lines.next().map(serde_json::from_slice::<Value>) else {
        return;
    };
    let outcomes: Vec<HookOutcome> = lines
        .take(6)
        .filter_map(|line| match line {
            [] => Some(HookFailure::TimedOut { ms: 1 }.into()),
            line => serde_json::from_slice::<HookResult>(line).ok().map(|result| result.outcome),
        })
        .collect();
    let handlers = (0..).zip(&outcomes).map(|(order, _)| Handler {
        plugin: PluginId(format!("p{order}")),
        instance: 0,
        process: u64::from(order / 2),
        priority: 0,
        order,
        fail_closed: order == 1,
        rights: Rights::ALL,
    });
    let item = HookPayload::new(Value::Null, output.clone());
    let mut chain = Chain::new(point, handlers.collect(), vec![item]);
    let kept = guard::keep(point, &output);
    let mut outcomes = outcomes.into_iter().enumerate();
    let folded = loop {
        match chain.next() {
            Next::Done(folded) => break folded,
            Next::Call(call) => {
                assert!(!call.handlers.is_empty());
                for _ in call.handlers {
                    let Some((index, outcome)) = outcomes.next() else {
                        return;
                    };
                    chain.feed(index, outcome.clone(), 1.0);
                    // An answer twice changes nothing.
                    let before = chain.items().to_vec();
                    chain.feed(index, outcome, 1.0);
                    assert_eq!(chain.items(), before);
                }
            }
        }
    };
    assert_eq!(folded.outputs.len(), 1);
    let mut result = folded.outputs[0].clone();
    assert_eq!(guard::uphold(point, &kept, &mut result), []);
    assert_eq!(result, folded.outputs[0]);
    if folded.block.is_some() {
        let refuses = folded.runs.last().is_some_and(|run| run.message.is_some());
        assert!(refuses, "{:?}", folded.runs);
    }
});
