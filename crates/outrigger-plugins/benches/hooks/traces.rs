//! What a call costs whose record keeps what the handler changed (A2), beside one whose record does not: two plugins of
//! their own, in turns, so that a machine whose speed changes changes it for both.

use std::time::Duration;

use outrigger_plugins::PluginSettings;
use serde_json::json;

use crate::room::Room;
use crate::{Report, at, median, timed};

/// The call that keeps values may take this much longer.
const GOAL: f64 = 1.25;
const ROUNDS: usize = 9;
const CALLS: usize = 200;

/// What is changed, and how much the call printed.
const CASES: [(&str, &str, usize); 5] = [
    ("nothing", "nothing, of 1 KB", 1 << 10),
    ("title", "a title, beside 1 KB", 1 << 10),
    ("output", "the end of 1 KB", 1 << 10),
    ("output", "the end of 30 KB", 30 << 10),
    ("output", "the end of 100 KB", 100 << 10),
];

pub(crate) async fn traces(report: &mut Report) {
    let with = Room::recording(PluginSettings::default(), true).await;
    let without = Room::recording(PluginSettings::default(), false).await;
    println!("one hook call, with and without what it changed in its record, p50 in microseconds");
    println!(
        "{:28} {:>9} {:>9} {:>7}",
        "it changes", "without", "with", "ratio"
    );
    for (field, name, bytes) in CASES {
        let printed = printed(bytes);
        assert_eq!(
            with.behind_a_call(field, &printed).await,
            usize::from(field != "nothing")
        );
        assert_eq!(without.behind_a_call(field, &printed).await, 0);
        let (mut ratios, mut on, mut off) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            // Who is first changes with each round, and the first round warms all up.
            let (one, other) = if round % 2 == 0 {
                (&with, &without)
            } else {
                (&without, &with)
            };
            let (first, second) = (
                calls(one, field, &printed).await,
                calls(other, field, &printed).await,
            );
            let (now, before) = if round % 2 == 0 {
                (first, second)
            } else {
                (second, first)
            };
            if round > 0 {
                ratios.push(now / before);
                on.push(now);
                off.push(before);
            }
        }
        let (on, off, ratio) = (median(on), median(off), median(ratios));
        report.values.push(json!({
            "figure": "traces", "changes": name, "unit": "us", "with": on, "without": off, "ratio": ratio,
        }));
        let goal =
            format!("changes {name}: {ratio:.2} times the call without values (goal {GOAL})");
        let verdict = report.goal(goal, ratio <= GOAL);
        println!("{name:28} {off:9.1} {on:9.1} {ratio:7.2}  {verdict}");
    }
    with.end().await;
    without.end().await;
    println!();
}

/// The middle of some calls, in microseconds.
async fn calls(room: &Room, field: &str, printed: &str) -> f64 {
    let mut times: Vec<Duration> = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let call = async {
            room.behind_a_call(field, printed).await;
        };
        times.push(timed(call).await);
    }
    times.sort_unstable();
    at(&times, 0.5)
}

/// Source code, as tools print it.
fn printed(bytes: usize) -> String {
    let mut text = String::new();
    for n in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!(
            "{n:>5}\tlet value_{n} = compute(&input, {n})?; // a step of the pass\n"
        ));
    }
    text
}
