//! The cost of each plugin in words, with advice.

use std::collections::BTreeMap;

use outrigger_plugins::{Cost, Costs, PluginStatus};
use outrigger_protocol::event::Event;
use outrigger_protocol::log::LogRecord;
use outrigger_sandbox::usage::Usage;
use outrigger_store::{RecordQuery, Store};

use crate::commands::plugin::perf::times;
use crate::failure::Failure;

/// Maximum number of records of each kind, the latest ones: a doctor must not take minutes.
const LATEST: i64 = 200_000;
/// Number of records read at once.
const PAGE: usize = 10_000;
/// A plugin that delays a turn by more than this at p95 gets advice.
const SLOW_TURN_MS: f64 = 1000.0;
/// So does one that takes longer than this to load.
const SLOW_LOAD_MS: f64 = 1000.0;

/// Minimum CPU time that is shown.
const LEAST_CPU_MS: f64 = 100.0;

/// The report about one plugin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) plugin: String,
    /// The figures; the first line is the summary.
    pub(super) lines: Vec<String>,
    /// The advice. Empty if nothing is wrong.
    pub(super) advice: Vec<String>,
}

/// Returns the costs in the log, the costliest plugin first. `rows`: the number of records.
pub(super) fn recorded(store: &Store, rows: u64) -> Result<Vec<Cost>, Failure> {
    let mut costs = Costs::default();
    let first = i64::try_from(rows)
        .unwrap_or(i64::MAX)
        .saturating_sub(LATEST);
    for kind in ["hook", "observed", "event"] {
        let mut after = first.max(0);
        loop {
            let found = store.records(&RecordQuery {
                scope: None,
                kind: Some(kind),
                after,
                limit: Some(PAGE),
            })?;
            let Some(last) = found.last() else { break };
            after = last.seq;
            for stored in found {
                match stored.record {
                    LogRecord::Hook(hook) => costs.add(&hook),
                    LogRecord::Observed(calls) => costs.observed(&calls),
                    LogRecord::Event(event) => {
                        if let Event::Custom(custom) = &event.event {
                            costs.notified(custom);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(costs.rows())
}

/// Returns the reports, costliest first, followed by plugins that were never called, by their load time. Plugins of other
/// folders in the log are skipped. `usage` returns the resource usage of a process.
pub(super) fn reports(
    costs: Vec<Cost>,
    plugins: &[PluginStatus],
    usage: impl Fn(u32) -> Option<Usage>,
) -> Vec<Report> {
    let mut known: BTreeMap<String, Cost> = costs
        .into_iter()
        .map(|cost| (cost.plugin.clone(), cost))
        .collect();
    let mut all: Vec<(Cost, &PluginStatus)> = plugins
        .iter()
        .filter(|plugin| plugin.generation > 0)
        .map(|plugin| (known.remove(&plugin.id).unwrap_or_default(), plugin))
        .collect();
    all.sort_by(|(a, one), (b, other)| {
        let by_time = b.total_ms.total_cmp(&a.total_ms);
        by_time.then(other.load_ms.total_cmp(&one.load_ms))
    });
    let words = |(cost, plugin): &(Cost, &PluginStatus)| Report {
        plugin: plugin.id.clone(),
        lines: lines(cost, plugin, plugins, &usage),
        advice: advice(cost, plugin),
    };
    all.iter().map(words).collect()
}

fn lines(
    cost: &Cost,
    plugin: &PluginStatus,
    all: &[PluginStatus],
    usage: impl Fn(u32) -> Option<Usage>,
) -> Vec<String> {
    let mut lines = vec![if cost.turns > 0 {
        let hook = cost.costliest.as_deref().unwrap_or_default();
        format!(
            "{} of a turn at p50, {} at p95, over {}; most of it in {hook}",
            time(cost.turn_p50_ms),
            time(cost.turn_p95_ms),
            count(cost.turns, "turn")
        )
    } else {
        "no turn has called it yet".to_owned()
    }];
    lines.push(process(plugin, all, usage));
    if cost.cpu_ms >= LEAST_CPU_MS {
        lines.push(format!(
            "its own code used {} of CPU in calls",
            time(cost.cpu_ms)
        ));
    }
    lines.extend(troubles(cost));
    lines.extend(
        plugin
            .breakers
            .iter()
            .map(|breaker| format!("breaker of {} is {} now", breaker.hook, breaker.state)),
    );
    if let Some(cause) = plugin.quarantine.as_ref().or(cost.quarantine.as_ref()) {
        lines.push(format!("was given a process of its own: {cause}"));
    }
    if let Some(cause) = &cost.restart_cause {
        lines.push(format!("last restart: {cause}"));
    }
    if let Some(cause) = &cost.off {
        lines.push(format!("was put off: {cause}"));
    }
    lines
}

/// Returns failures of its calls and its process.
fn troubles(cost: &Cost) -> Vec<String> {
    let mut lines = Vec::new();
    let timeouts: u64 = cost.timeouts.values().sum();
    let troubles = [
        (timeouts, "timeout"),
        (cost.errors, "error"),
        (cost.lost, "lost call"),
        (cost.skipped, "call left out, calls left out"),
        (cost.opened.values().sum(), "opened breaker"),
        (cost.restarts, "restart"),
    ];
    let troubles: Vec<String> = troubles
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| count(*n, what))
        .collect();
    if !troubles.is_empty() {
        let calls = count(cost.calls, "call");
        lines.push(format!("of {calls}: {}", troubles.join(", ")));
    }
    if !cost.restarts_by_others.is_empty() {
        let others: Vec<String> = cost
            .restarts_by_others
            .iter()
            .map(|(other, n)| format!("{} by {other}", count(*n, "restart")))
            .collect();
        lines.push(format!(
            "its process was shared and was ended for the faults of others: {}",
            others.join(", ")
        ));
    }
    lines
}

/// Returns the current resource usage of its process, and the plugins that share it.
fn process(
    plugin: &PluginStatus,
    all: &[PluginStatus],
    usage: impl Fn(u32) -> Option<Usage>,
) -> String {
    let load = format!("{} to load", time(plugin.load_ms));
    let Some((pid, used)) = plugin.pid.and_then(|pid| Some((pid, usage(pid)?))) else {
        return load;
    };
    let others: Vec<&str> = all
        .iter()
        .filter(|other| other.pid == Some(pid) && other.id != plugin.id)
        .map(|other| other.id.as_str())
        .collect();
    let shared = if others.is_empty() {
        String::new()
    } else {
        format!(", shared with {}", others.join(", "))
    };
    #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
    let cpu = time(used.cpu.as_millis() as f64);
    format!(
        "{load}; its process holds {} MiB and used {cpu} of CPU to start{shared}",
        used.rss >> 20
    )
}

fn advice(cost: &Cost, plugin: &PluginStatus) -> Vec<String> {
    let id = &plugin.id;
    let mut advice = Vec::new();
    if let Some((hook, n)) = cost.timeouts.iter().max_by_key(|(_, n)| **n) {
        advice.push(format!(
            "{hook} missed its deadline {}: give it more time ([plugins.\"{id}\"] timeout_ms) if it is only slow, else disable it (disabled = true) and tell its author",
            times(*n)
        ));
    }
    if cost.turn_p95_ms > SLOW_TURN_MS && cost.timeouts.is_empty() {
        advice.push(format!(
            "turns wait for it: `outrigger plugin perf` shows which hook; [plugins.\"{id}\"] timeout_ms sets a limit"
        ));
    }
    if cost.off.is_some() || cost.restarts > 2 {
        advice.push(format!(
            "its process keeps failing: `outrigger plugin trace` shows the calls before; [plugins.\"{id}\"] isolation = \"own\" keeps the others out of it"
        ));
    }
    if plugin.load_ms > SLOW_LOAD_MS {
        advice.push(format!(
            "each start waits {} for it to load",
            time(plugin.load_ms)
        ));
    }
    advice
}

/// Formats a duration: `0.4 ms`, `12 ms`, `3.2 s`.
fn time(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}

/// Formats a count: `1 turn`, `2 turns`; `one, many` for an irregular plural.
fn count(n: u64, what: &str) -> String {
    let (one, many) = what.split_once(", ").map_or_else(
        || (what, format!("{what}s")),
        |(one, many)| (one, many.to_owned()),
    );
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use outrigger_config::PluginSource;
    use outrigger_plugins::{BreakerState, BreakerStatus, Stage, UserGrants};

    use super::*;

    fn plugin(id: &str, pid: Option<u32>, load_ms: f64) -> PluginStatus {
        PluginStatus {
            id: id.to_owned(),
            spec: id.to_owned(),
            declared_in: PathBuf::from("/p/opencode.json"),
            kind: PluginSource::Config,
            entry: None,
            version: None,
            stage: Stage::Active,
            state: Stage::Active.into(),
            cause: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            hooks: Vec::new(),
            tools: Vec::new(),
            auth: Vec::new(),
            providers: Vec::new(),
            pid,
            generation: u64::from(pid.is_some()),
            usage: None,
            own_cpu_ms: 0,
            entered: Vec::new(),
            host: None,
            quarantine: None,
            events_missed: 0,
            trust: None,
            manifest: None,
            grants: UserGrants::default(),
            breakers: Vec::new(),
            load_ms,
            source: None,
        }
    }

    fn shown(reports: &[Report]) -> String {
        let mut text = String::new();
        for report in reports {
            text += &format!("{}: {}\n", report.plugin, report.lines.join("\n  "));
            for advice in &report.advice {
                text += &format!("  do: {advice}\n");
            }
        }
        text
    }

    #[test]
    fn the_costliest_first_in_words_with_what_to_do() {
        let map = |hook: &str, n| BTreeMap::from([(hook.to_owned(), n)]);
        let slow = Cost {
            plugin: "slow".into(),
            turns: 4,
            turn_p50_ms: 5_000.0,
            turn_p95_ms: 10_020.0,
            total_ms: 25_000.0,
            calls: 9,
            costliest: Some("chat.params".into()),
            timeouts: map("chat.params", 3),
            errors: 1,
            skipped: 1,
            opened: map("chat.params", 1),
            restarts: 3,
            cpu_ms: 4_900.0,
            restart_cause: Some("slow (chat.params) did not answer within 5000 ms".into()),
            quarantine: Some("it hung".into()),
            off: Some("it crashed too often".into()),
            ..Cost::default()
        };
        let quick = Cost {
            plugin: "quick".into(),
            turns: 1,
            turn_p50_ms: 0.42,
            turn_p95_ms: 0.42,
            total_ms: 0.42,
            calls: 1,
            costliest: Some("chat.message".into()),
            restarts_by_others: map("slow", 2),
            ..Cost::default()
        };
        let elsewhere = Cost {
            plugin: "of another folder".into(),
            total_ms: 1.0,
            ..Cost::default()
        };
        let mut failing = plugin("slow", Some(7), 12.0);
        failing.breakers.push(BreakerStatus {
            hook: "chat.params".into(),
            state: BreakerState::Open,
            timeouts: 0,
            opens_in_ms: Some(1000),
        });
        let plugins = [
            plugin("not loaded", None, 0.0),
            plugin("unused", Some(8), 2_300.0),
            plugin("quick", Some(8), 3.0),
            failing,
        ];
        let usage = |pid: u32| {
            Some(Usage {
                cpu: Duration::from_millis(u64::from(pid) * 20),
                rss: u64::from(pid) << 23,
                processes: 1,
                files: 3,
            })
        };
        let found = reports(vec![elsewhere, quick, slow], &plugins, usage);
        insta::assert_snapshot!(shown(&found), @r#"
        slow: 5.0 s of a turn at p50, 10.0 s at p95, over 4 turns; most of it in chat.params
          12 ms to load; its process holds 56 MiB and used 140 ms of CPU to start
          its own code used 4.9 s of CPU in calls
          of 9 calls: 3 timeouts, 1 error, 1 call left out, 1 opened breaker, 3 restarts
          breaker of chat.params is open now
          was given a process of its own: it hung
          last restart: slow (chat.params) did not answer within 5000 ms
          was put off: it crashed too often
          do: chat.params missed its deadline 3 times: give it more time ([plugins."slow"] timeout_ms) if it is only slow, else disable it (disabled = true) and tell its author
          do: its process keeps failing: `outrigger plugin trace` shows the calls before; [plugins."slow"] isolation = "own" keeps the others out of it
        quick: 0.4 ms of a turn at p50, 0.4 ms at p95, over 1 turn; most of it in chat.message
          3.0 ms to load; its process holds 64 MiB and used 160 ms of CPU to start, shared with unused
          its process was shared and was ended for the faults of others: 2 restarts by slow
        unused: no turn has called it yet
          2.3 s to load; its process holds 64 MiB and used 160 ms of CPU to start, shared with quick
          do: each start waits 2.3 s for it to load
        "#);
    }
}
