//! Laws of a chain: its order, and the folding of answers (A6, C4).

use outrigger_kernel::hooks::{Chain, Folded, Handler, HandlerRun, Next, Rights};
use outrigger_protocol::hook::{Change, Decision, HookFailure, HookOutcome, Key};
use outrigger_protocol::id::PluginId;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::chain::{at, change, payload};

/// Runs a chain with simulated plugins: `act` gets the handler and the items as its process would have them.
fn run(mut chain: Chain, mut act: impl FnMut(&Handler, &[Value]) -> HookOutcome) -> Folded {
    loop {
        let call = match chain.next() {
            Next::Done(folded) => return folded,
            Next::Call(call) => call,
        };
        // A process works on its own copy, handler after handler, like the host script.
        let mut items: Vec<Value> = call.items.into_iter().map(|item| item.output).collect();
        for index in call.handlers {
            let outcome = act(&chain.handlers()[index], &items);
            if let HookOutcome::Patch(patch) = &outcome {
                for (item, changes) in items.iter_mut().zip(&patch.items) {
                    for change in changes {
                        let _ = outrigger_kernel::hooks::apply(item, change);
                    }
                }
            }
            chain.feed(index, outcome, 1.0);
        }
    }
}

// ---- order ----

fn handlers() -> impl Strategy<Value = Vec<Handler>> {
    let one = (-2..3_i32, 0..4_u32, 0..3_usize, 0..3_u64, any::<bool>());
    prop::collection::vec(one, 0..12).prop_map(|items| {
        let make = |(n, (priority, order, instance, process, fail_closed))| {
            let plugin = PluginId(format!("p{n}"));
            Handler {
                plugin,
                instance,
                process,
                priority,
                order,
                fail_closed,
                rights: Rights::ALL,
            }
        };
        items.into_iter().enumerate().map(make).collect()
    })
}

fn rank(h: &Handler) -> (bool, i32, u32, usize) {
    (h.fail_closed, -h.priority, h.order, h.instance)
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn the_order_is_stable_and_total(given in handlers()) {
        let chain = Chain::new(at("llm.before_params"), given.clone(), vec![]);
        let got = chain.handlers();
        // No handler is lost or called twice.
        let mut names: Vec<&str> = got.iter().map(|h| h.plugin.as_str()).collect();
        names.sort_unstable();
        let mut want: Vec<&str> = given.iter().map(|h| h.plugin.as_str()).collect();
        want.sort_unstable();
        prop_assert_eq!(names, want);
        for pair in got.windows(2) {
            prop_assert!(rank(&pair[0]) <= rank(&pair[1]));
            if rank(&pair[0]) == rank(&pair[1]) {
                let place = |h: &Handler| given.iter().position(|other| other.plugin == h.plugin);
                prop_assert!(place(&pair[0]) < place(&pair[1]), "equal ranks keep the order of registration");
            }
        }
    }

    #[test]
    fn the_order_of_registration_does_not_matter_between_unequal_ranks(
        (given, shuffled) in handlers().prop_map(|mut given| {
            given.sort_by_key(rank);
            given.dedup_by_key(|h| rank(h));
            given
        }).prop_flat_map(|given| (Just(given.clone()), Just(given).prop_shuffle())),
    ) {
        let one = Chain::new(at("llm.before_params"), given, vec![]);
        let other = Chain::new(at("llm.before_params"), shuffled, vec![]);
        prop_assert_eq!(one.handlers(), other.handlers());
    }
}

// ---- folding ----

/// Simulates a plugin by what it sees: deterministic, and sensitive to every change before it.
fn behave(seed: u64, handler: &Handler, items: &[Value]) -> HookOutcome {
    let seen = serde_json::to_string(items).unwrap();
    let mut hash =
        outrigger_kernel::digest::fnv1a(format!("{seed} {} {seen}", handler.plugin).as_bytes());
    let mut pick = |n: u64| {
        hash = hash
            .wrapping_mul(0x5851_F42D_4C95_7F2D)
            .wrapping_add(0x1405_7B7E_F767_814F);
        (hash >> 33) % n
    };
    match pick(10) {
        0 => {
            return HookOutcome::Failed(HookFailure::Threw {
                message: format!("{} threw", handler.plugin),
            });
        }
        1 => {
            return HookOutcome::Failed(HookFailure::Skipped {
                reason: "breaker open".into(),
            });
        }
        2 => return HookOutcome::Failed(HookFailure::TimedOut { ms: 5000 }),
        _ => {}
    }
    let answers = items.iter().map(|item| {
        let mut changes = Vec::new();
        for _ in 0..pick(4) {
            let name =
                ["temperature", "topP", "forbidden", "options"][usize::try_from(pick(4)).unwrap()];
            changes.push(match (name, pick(5)) {
                ("options", 0) => change(&["options"], None),
                ("options", 1) => change(&["options"], Some(json!([]))),
                ("options", n) => change(
                    &["options", &format!("k{n}")],
                    Some(json!({ "by": handler.plugin, "n": item["options"] })),
                ),
                (_, 0) => change(&[name], None),
                (_, 1) => change(&[name], Some(json!("text"))),
                (_, n) => change(
                    &[name],
                    Some(json!(
                        item["temperature"].as_f64().unwrap_or(0.0)
                            + f64::from(u32::try_from(n).unwrap())
                    )),
                ),
            });
        }
        changes
    });
    HookOutcome::patch(answers.collect())
}

/// Handlers in one process see each other's changes as the process applied them; those in another see the result of the
/// chain. Both are equal only if every answer is allowed, so the law is stated for plugins that obey.
fn obey(seed: u64, handler: &Handler, items: &[Value]) -> HookOutcome {
    match behave(seed, handler, items) {
        HookOutcome::Patch(patch) => {
            let allowed = |c: &Change| {
                let top = c.path.first() == Some(&Key::Name("options".into()));
                let number = c.value.as_ref().is_none_or(Value::is_number);
                (top && c.path.len() == 2)
                    || (!top && number && c.path.first() != Some(&Key::Name("forbidden".into())))
            };
            HookOutcome::patch(
                patch
                    .items
                    .into_iter()
                    .map(|a| a.into_iter().filter(allowed).collect())
                    .collect(),
            )
        }
        other => other,
    }
}

fn without_process(folded: &Folded) -> Value {
    let run =
        |r: &HandlerRun| json!([r.handler, r.outcome, r.decision, r.changed, r.message, r.ms]);
    json!({ "outputs": folded.outputs, "block": folded.block, "runs": folded.runs.iter().map(run).collect::<Vec<_>>() })
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn batches_fold_to_what_single_calls_fold_to(
        mut given in handlers(), processes in prop::collection::vec(0..3_u64, 12), seed in any::<u64>(), items in 1..3_usize,
    ) {
        let start = || (0..items).map(|n| payload(json!({"temperature": n, "options": {"start": n}}))).collect::<Vec<_>>();
        for (h, process) in given.iter_mut().zip(&processes) {
            h.process = *process;
        }
        let batched = run(Chain::new(at("llm.before_params"), given.clone(), start()), |h, items| obey(seed, h, items));
        for (n, h) in given.iter_mut().enumerate() {
            h.process = u64::try_from(n).unwrap();
        }
        let single = run(Chain::new(at("llm.before_params"), given, start()), |h, items| obey(seed, h, items));
        prop_assert_eq!(without_process(&batched), without_process(&single));
    }

    #[test]
    fn whatever_handlers_answer_the_output_keeps_its_shape(given in handlers(), seed in any::<u64>()) {
        let start = json!({"temperature": 0.5, "options": {}});
        let count = given.len();
        let folded = run(Chain::new(at("llm.before_params"), given, vec![payload(start)]), |h, items| behave(seed, h, items));
        let output = &folded.outputs[0];
        prop_assert!(output["options"].is_object());
        prop_assert!(output.get("forbidden").is_none());
        prop_assert!(output.get("temperature").is_none_or(Value::is_number));
        prop_assert!(folded.block.is_some() || folded.runs.len() == count);
        for run in &folded.runs {
            prop_assert_eq!(run.decision == Decision::Patch, !run.changed.is_empty());
        }
    }
}
