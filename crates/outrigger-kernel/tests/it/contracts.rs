//! Behaviour contracts (C14), layer unit. docs/contracts.md has the mapping.

use outrigger_kernel::hooks::{Chain, Failure, HookPoint, Next, Phase};
use outrigger_protocol::hook::{Block, Decision, HookFailure, HookOutcome};
use serde_json::{Value, json};

use crate::chain::{at, change, folded, handler, payload};

/// `BHV-AGENT-HOOK-LIFECYCLE`: at every point handlers are called once each, by priority, then by registration; each
/// gets the output of the previous one; a refusal ends the chain if the point allows it; every run is reported, in
/// order.
#[test]
fn bhv_agent_hook_lifecycle() {
    for point in HookPoint::ALL.iter().copied() {
        let handlers = [(0, 0), (1, 5), (2, 5), (3, -1)].map(|(n, priority)| {
            let mut handler = handler(n, u64::from(n));
            handler.priority = priority;
            handler
        });
        let mut chain = Chain::new(point, handlers.to_vec(), vec![payload(json!({}))]);
        let mut called = Vec::new();
        while let Next::Call(call) = chain.next() {
            for index in call.handlers {
                called.push(chain.handlers()[index].plugin.to_string());
                chain.feed(index, HookOutcome::Continue, 1.0);
                // A process that answers twice changes nothing.
                chain.feed(
                    index,
                    HookOutcome::Failed(HookFailure::TimedOut { ms: 1 }),
                    1.0,
                );
            }
        }
        assert_eq!(called, ["p1", "p2", "p0", "p3"], "{}", point.name());
        let end = folded(&chain);
        assert!(
            end.runs
                .iter()
                .all(|run| run.decision == Decision::Continue),
            "{}",
            point.name()
        );
        assert_eq!(
            end.runs.iter().map(|run| run.handler).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );

        let mut chain = Chain::new(point, handlers.to_vec(), vec![payload(json!({}))]);
        let block = Block {
            code: "no".into(),
            message: "no".into(),
            details: Value::Null,
            plugin: None,
        };
        chain.feed(0, HookOutcome::Block(block), 1.0);
        assert_eq!(
            matches!(chain.next(), Next::Done(_)),
            point.spec().block,
            "{}",
            point.name()
        );
        // In the error phase nothing is swallowed: context may be added, but neither a change nor a refusal is allowed.
        if point.spec().phase == Phase::Error {
            let adds = point
                .spec()
                .patch
                .iter()
                .all(|field| field.key == "context");
            assert!(adds && !point.spec().block, "{}", point.name());
        }
    }
    let mut chain = Chain::new(
        at("llm.before_system"),
        vec![handler(0, 1), handler(1, 2)],
        vec![payload(json!({"system": []}))],
    );
    for word in ["a", "b"] {
        let Next::Call(call) = chain.next() else {
            panic!("over")
        };
        let mut list = call.items[0].output["system"].as_array().unwrap().clone();
        list.push(json!(word));
        let changes = vec![change(&["system"], Some(list.into()))];
        chain.feed(call.handlers[0], HookOutcome::patch(vec![changes]), 1.0);
    }
    assert_eq!(folded(&chain).outputs, [json!({"system": ["a", "b"]})]);
}

/// `BHV-PLUGIN-FAILURE-ISOLATION`: a handler that throws, is late, dies or is skipped loses its own change; the others
/// get the previous output. If a throw is a refusal (C5) or a handler is security-critical, what it guards does not
/// happen.
#[test]
fn bhv_plugin_failure_isolation() {
    let failures = [
        HookOutcome::Failed(HookFailure::Threw {
            message: "t".into(),
        }),
        HookOutcome::Failed(HookFailure::TimedOut { ms: 5 }),
        HookOutcome::Failed(HookFailure::Lost {
            message: "l".into(),
        }),
        HookOutcome::Failed(HookFailure::Skipped {
            reason: "breaker".into(),
        }),
    ];
    for point in HookPoint::ALL.iter().copied() {
        for failure in &failures {
            let start = json!({"kept": true});
            let mut chain = Chain::new(
                point,
                vec![handler(0, 1), handler(1, 2)],
                vec![payload(start.clone())],
            );
            chain.feed(0, failure.clone(), 1.0);
            let throw = matches!(failure, HookOutcome::Failed(HookFailure::Threw { .. }));
            if throw && point.spec().failure == Failure::ThrowBlocks {
                assert_eq!(
                    folded(&chain).block.map(|block| block.code),
                    Some("hook.threw".into()),
                    "{}",
                    point.name()
                );
                continue;
            }
            let Next::Call(call) = chain.next() else {
                panic!("{} {failure:?}: the chain is over", point.name())
            };
            assert_eq!(call.items[0].output, start, "{} {failure:?}", point.name());
            chain.feed(1, HookOutcome::Continue, 1.0);
            let end = folded(&chain);
            assert_eq!(
                (end.block, &end.outputs[0]),
                (None, &start),
                "{} {failure:?}",
                point.name()
            );

            let mut critical = handler(0, 1);
            critical.fail_closed = true;
            let mut chain = Chain::new(point, vec![critical, handler(1, 2)], vec![payload(start)]);
            // It is called after the other one.
            chain.feed(0, HookOutcome::Continue, 1.0);
            chain.feed(1, failure.clone(), 1.0);
            let code = folded(&chain).block.map(|block| block.code);
            assert_eq!(
                code.as_deref(),
                point.fails_closed().then_some("hook.failed_closed"),
                "{} {failure:?}",
                point.name()
            );
        }
    }
}
