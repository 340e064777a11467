//! The order of a chain and the folding of answers (A6, C2, C4, C5).

use outrigger_kernel::hooks::{Chain, Folded, Handler, HandlerRun, Next, POINTS, Point, point};
use outrigger_protocol::hook::{Block, Change, Decision, HandlerOutcome, Key};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::turn::HookPayload;
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) fn at(name: &str) -> &'static Point {
    point(name).unwrap()
}

pub(crate) fn handler(n: u32, process: u64) -> Handler {
    Handler {
        plugin: PluginId(format!("p{n}")),
        instance: 0,
        process,
        priority: 0,
        order: n,
        fail_closed: false,
    }
}

pub(crate) fn payload(output: Value) -> HookPayload {
    HookPayload {
        input: json!({}),
        output,
    }
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

fn answered(changes: Vec<Change>) -> HandlerOutcome {
    HandlerOutcome::Answered {
        items: vec![changes],
    }
}

pub(crate) fn folded(chain: &Chain) -> Folded {
    match chain.next() {
        Next::Done(folded) => folded,
        Next::Call(call) => panic!("still to call: {call:?}"),
    }
}

/// Runs a chain with a plugin made of code: `act` sees the handler and the items as its process would have them.
fn run(mut chain: Chain, mut act: impl FnMut(&Handler, &[Value]) -> HandlerOutcome) -> Folded {
    loop {
        let call = match chain.next() {
            Next::Done(folded) => return folded,
            Next::Call(call) => call,
        };
        // A process works on its own copy, handler after handler, as the host script does.
        let mut items: Vec<Value> = call.items.into_iter().map(|item| item.output).collect();
        for index in call.handlers {
            let outcome = act(&chain.handlers()[index], &items);
            if let HandlerOutcome::Answered { items: answers } = &outcome {
                for (item, changes) in items.iter_mut().zip(answers) {
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
            }
        };
        items.into_iter().enumerate().map(make).collect()
    })
}

fn rank(h: &Handler) -> (i32, u32, usize) {
    (-h.priority, h.order, h.instance)
}

proptest! {
    #![proptest_config(crate::cases(128))]

    #[test]
    fn the_order_is_stable_and_total(given in handlers()) {
        let chain = Chain::new(at("llm.before_params"), given.clone(), vec![]);
        let got = chain.handlers();
        // Nobody is lost, nobody comes twice.
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

/// What a simulated plugin does, from what it sees: deterministic, and sensitive to every change before it.
fn behave(seed: u64, handler: &Handler, items: &[Value]) -> HandlerOutcome {
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
            return HandlerOutcome::Threw {
                message: format!("{} threw", handler.plugin),
            };
        }
        1 => {
            return HandlerOutcome::Skipped {
                reason: "breaker open".into(),
            };
        }
        2 => return HandlerOutcome::TimedOut { ms: 5000 },
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
    HandlerOutcome::Answered {
        items: answers.collect(),
    }
}

/// Handlers in one process see each other's changes as the process applied them; those in another see what the chain made
/// of them. The two are the same only when every answer is allowed, so the law is stated for plugins that obey.
fn obey(seed: u64, handler: &Handler, items: &[Value]) -> HandlerOutcome {
    match behave(seed, handler, items) {
        HandlerOutcome::Answered { items: answers } => {
            let allowed = |c: &Change| {
                let top = c.path.first() == Some(&Key::Name("options".into()));
                let number = c.value.as_ref().is_none_or(Value::is_number);
                (top && c.path.len() == 2)
                    || (!top && number && c.path.first() != Some(&Key::Name("forbidden".into())))
            };
            HandlerOutcome::Answered {
                items: answers
                    .into_iter()
                    .map(|a| a.into_iter().filter(allowed).collect())
                    .collect(),
            }
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

// ---- failures ----

fn three(point: &str, fail_closed: bool) -> Chain {
    let mut all: Vec<Handler> = (0..3).map(|n| handler(n, 1)).collect();
    all[1].fail_closed = fail_closed;
    Chain::new(
        at(point),
        all,
        vec![payload(json!({"args": {"n": 0}, "options": {}}))],
    )
}

/// The middle one of three neighbours in one process ends so: what the third sees, and what is recorded.
#[test]
fn failures_by_table() {
    let threw = || HandlerOutcome::Threw {
        message: "boom".into(),
    };
    let late = || HandlerOutcome::TimedOut { ms: 5000 };
    let lost = || HandlerOutcome::Lost {
        message: "process ended".into(),
    };
    let skipped = || HandlerOutcome::Skipped {
        reason: "breaker open".into(),
    };
    let refused = || {
        HandlerOutcome::Blocked(Block {
            code: "policy.no".into(),
            message: "no".into(),
            details: json!({"a": 1}),
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
        chain.feed(0, HandlerOutcome::unchanged(), 1.0);
        chain.feed(1, outcome.clone(), 2.0);
        assert_eq!(folded_or_next(&chain), code.is_some(), "{label}");
        if code.is_none() {
            // The chain goes on behind the culprit, in a new call, with the output from before it.
            let Next::Call(call) = chain.next() else {
                panic!("{label}")
            };
            assert_eq!(call.handlers, [2], "{label}");
            assert_eq!(
                call.items[0].output,
                json!({"args": {"n": 0}, "options": {}}),
                "{label}"
            );
            chain.feed(2, HandlerOutcome::unchanged(), 3.0);
        }
        let end = folded(&chain);
        assert_eq!(end.block.as_ref().map(|b| b.code.as_str()), code, "{label}");
        assert_eq!(
            end.runs.len(),
            if code.is_some() { 2 } else { 3 },
            "{label}"
        );
        let run = &end.runs[1];
        assert_eq!(
            (run.handler, run.outcome, run.decision, run.ms),
            (1, outcome.label(), decision, 2.0),
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
    };
    chain.feed(1, HandlerOutcome::Blocked(block.clone()), 1.0);
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
        HandlerOutcome::Threw {
            message: "too early".into(),
        },
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
            chain.feed(index, HandlerOutcome::unchanged(), 0.0);
        }
    }
    assert_eq!(calls, [vec![0, 1], vec![2], vec![3]]);
}

#[test]
fn a_chain_without_handlers_gives_back_what_came_in() {
    for point in POINTS {
        let chain = Chain::new(
            point,
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
