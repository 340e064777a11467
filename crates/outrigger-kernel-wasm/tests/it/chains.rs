//! Chains by JSON fold to what the kernel's fold to.

use outrigger_kernel::hooks::{Chain, Handler, HookPoint, Next, Rights};
use outrigger_protocol::hook::{Block, Change, HookFailure, HookOutcome, Key};
use outrigger_protocol::turn::HookPayload;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases::Asked;

#[derive(Clone, Debug)]
enum Does {
    Nothing,
    Sets(&'static str, i64),
    Refuses,
    Throws,
    Hangs,
}

impl Does {
    fn wire(&self) -> Value {
        match self {
            Self::Nothing => json!("continue"),
            Self::Sets(key, number) => {
                json!({ "patch": [[{ "path": [key], "value": number }]] })
            }
            Self::Refuses => json!({ "block": { "code": "acme.no", "message": "no" } }),
            Self::Throws => json!({ "threw": "broken" }),
            Self::Hangs => json!({ "timed_out": 5000 }),
        }
    }

    fn outcome(&self) -> HookOutcome {
        match self {
            Self::Nothing => HookOutcome::Continue,
            Self::Sets(key, number) => HookOutcome::patch(vec![vec![Change {
                path: vec![Key::Name((*key).to_owned())],
                value: Some(json!(number)),
            }]]),
            Self::Refuses => HookOutcome::Block(Block {
                code: "acme.no".to_owned(),
                message: "no".to_owned(),
                details: Value::Null,
                plugin: None,
            }),
            Self::Throws => HookOutcome::Failed(HookFailure::Threw {
                message: "broken".to_owned(),
            }),
            Self::Hangs => HookOutcome::Failed(HookFailure::TimedOut { ms: 5000 }),
        }
    }
}

fn does() -> impl Strategy<Value = Does> {
    let key = prop::sample::select(vec!["temperature", "topP", "forbidden", "args", "output"]);
    prop_oneof![
        2 => Just(Does::Nothing),
        4 => (key, 0..9_i64).prop_map(|(key, number)| Does::Sets(key, number)),
        1 => Just(Does::Refuses),
        1 => Just(Does::Throws),
        1 => Just(Does::Hangs),
    ]
}

fn plugin(place: usize) -> String {
    format!("p{place}")
}

proptest! {
    #![proptest_config(crate::config(128))]

    #[test]
    fn a_chain_is_the_kernels(
        handlers in prop::collection::vec((does(), -1..2_i32, any::<bool>(), prop::bool::weighted(0.1)), 0..6),
        point in prop::sample::select(vec!["llm.before_params", "tool.before_call", "run.before_start", "cdp.before_action"]),
    ) {
        let point_of = HookPoint::parse(point).unwrap();
        let (input, output) = (json!({ "sessionID": "s" }), json!({ "temperature": 0.5, "options": {}, "args": {} }));
        let native = handlers.iter().enumerate().map(|(place, (_, priority, named, fail_closed))| Handler {
            plugin: plugin(place).as_str().into(),
            instance: 0,
            process: place as u64,
            priority: *priority,
            order: u32::try_from(place).unwrap(),
            fail_closed: *fail_closed,
            rights: if *named { Rights::ALL } else { Rights::unnamed(point_of) },
        });
        let mut chain = Chain::new(point_of, native.collect(), vec![HookPayload::new(input.clone(), output.clone())]);
        let place_of = |plugin: &str| plugin[1..].parse::<usize>().unwrap();
        let folded = loop {
            match chain.next() {
                Next::Done(folded) => break folded,
                Next::Call(call) => {
                    let at = call.handlers[0];
                    let place = place_of(chain.handlers()[at].plugin.as_str());
                    chain.feed(at, handlers[place].0.outcome(), 1.5);
                }
            }
        };
        let given: Vec<Value> = handlers.iter().enumerate().map(|(place, (_, priority, named, fail_closed))| {
            json!({ "plugin": plugin(place), "priority": priority, "order": place, "named": named, "fail_closed": fail_closed })
        }).collect();
        let mut asked = Asked::new("chains");
        let items = json!([{ "input": input, "output": output }]);
        let mut next = asked.call("chain.open", json!({ "point": point, "handlers": given, "items": items })).unwrap();
        while let Some(call) = next["call"].get(0).cloned() {
            let outcome = handlers[place_of(call["plugin"].as_str().unwrap())].0.wire();
            let with = json!({ "chain": next["chain"], "handler": call["handler"], "outcome": outcome, "ms": 1.5 });
            next = asked.call("chain.feed", with).unwrap();
        }
        let done = &next["done"];
        prop_assert_eq!(&done["outputs"], &json!(folded.outputs));
        prop_assert_eq!(&done["block"], &json!(folded.block));
        prop_assert_eq!(done["runs"].as_array().unwrap().len(), folded.runs.len());
        for (run, wanted) in done["runs"].as_array().unwrap().iter().zip(&folded.runs) {
            prop_assert_eq!(&run["decision"], &json!(wanted.decision));
            prop_assert_eq!(&run["message"], &json!(wanted.message));
        }
        let gone = asked.call("chain.feed", json!({ "chain": next["chain"], "handler": 0, "outcome": "continue", "ms": 0.0 }));
        prop_assert_eq!(gone, Err("kernel.number".to_owned()));
        // A point that there is not is not a chain.
        let nowhere = asked.call("chain.open", json!({ "point": "no.such", "handlers": [], "items": [] }));
        prop_assert_eq!(nowhere, Err("kernel.request".to_owned()));
    }
}
