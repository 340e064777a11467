//! `outrigger plugin perf`, `trace` and `top`: the cost and activity of plugins (A1, A2).

mod changes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use outrigger_plugins::{Perf, PerfRow};
use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_store::{RecordQuery, Scope, Store};
use serde_json::Value;

use crate::failure::Failure;
use crate::terminal;
use crate::terminal::{name as shown, out};
use outrigger_client::Remote;

/// Number of records read at once.
const PAGE: usize = 10_000;

/// `plugin perf`: costs from the log, of one session or of all.
pub(crate) fn perf(store: &Store, session: Option<&SessionId>, json: bool) -> Result<u8, Failure> {
    let mut figures = Perf::default();
    each(store, session, "hook", |record| {
        if let LogRecord::Hook(hook) = record {
            figures.add(&hook);
        }
    })?;
    each(store, session, "observed", |record| {
        if let LogRecord::Observed(calls) = record {
            figures.observed(&calls);
        }
    })?;
    let rows = figures.rows();
    out(&if json {
        let text = serde_json::to_string_pretty(&rows).unwrap_or_default();
        format!("{text}\n")
    } else {
        table(&rows)
    });
    Ok(0)
}

/// `plugin trace`: every call of a session in order.
pub(crate) fn trace(store: &Store, session: &SessionId, json: bool) -> Result<u8, Failure> {
    let mut records = Vec::new();
    each(store, Some(session), "hook", |record| {
        if let LogRecord::Hook(hook) = record {
            records.push(*hook);
        }
    })?;
    if json {
        let text = serde_json::to_string_pretty(&records).unwrap_or_default();
        out(&format!("{text}\n"));
    } else {
        out(&traced(&records));
    }
    Ok(0)
}

fn each(
    store: &Store,
    session: Option<&SessionId>,
    kind: &str,
    mut take: impl FnMut(LogRecord),
) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let found = store.records(&RecordQuery {
            scope: session.map(Scope::Session),
            kind: Some(kind),
            after,
            limit: Some(PAGE),
        })?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        after = last.seq;
        found.into_iter().for_each(|stored| take(stored.record));
    }
}

fn table(rows: &[PerfRow]) -> String {
    if rows.is_empty() {
        return "no hook of a plugin was called yet\n".to_owned();
    }
    let name = |row: &PerfRow| row.plugin.chars().count();
    let wide = rows.iter().map(name).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:wide$}  {:42} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}\n",
        "PLUGIN", "HOOK", "CALLS", "P50", "P95", "P99", "MAX", "TOTAL", "LARGEST"
    );
    for row in rows {
        text.push_str(&crate::terminal::one_line(format_args!(
            "{:wide$}  {:42} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9}{}",
            row.plugin,
            row.hook,
            row.calls,
            time(row.p50_ms),
            time(row.p95_ms),
            time(row.p99_ms),
            time(row.max_ms),
            time(row.total_ms),
            row.max_bytes,
            troubles(row)
        )));
    }
    text
}

/// Formats problems, after a row.
fn troubles(row: &PerfRow) -> String {
    let bad = row.outcomes.iter().filter(|(outcome, _)| *outcome != "ok");
    let mut words: Vec<String> = bad.map(|(outcome, n)| format!("{n} {outcome}")).collect();
    if row.skipped > 0 {
        words.push(format!("{} skipped", row.skipped));
    }
    if words.is_empty() {
        String::new()
    } else {
        format!("  {}", words.join(", "))
    }
}

/// Formats a duration: `0.41 ms`, `12 ms`, `3.2 s`.
fn time(ms: f64) -> String {
    if ms < 10.0 {
        format!("{ms:.2} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}

fn traced(records: &[HookRecord]) -> String {
    if records.is_empty() {
        return "no hook of a plugin was called in this session\n".to_owned();
    }
    let mut text = String::new();
    for block in turns(records) {
        let Some(((_, first), turn)) = block.first().map(|it| (*it, it.1.turn.as_ref())) else {
            continue;
        };
        let name = turn.map_or("outside a turn", |turn| turn.as_str());
        let _ = writeln!(text, "{name}");
        for (number, record) in block {
            call(&mut text, number, record, first.at);
        }
    }
    text
}

/// Groups records by turn, each with its number in the session, in the order in which the turns started: the turn of a
/// title runs concurrently with the one it belongs to.
fn turns(records: &[HookRecord]) -> Vec<Vec<(usize, &HookRecord)>> {
    let mut blocks: Vec<Vec<(usize, &HookRecord)>> = Vec::new();
    let mut places = BTreeMap::new();
    for numbered in records.iter().enumerate() {
        let place = *places.entry(&numbered.1.turn).or_insert(blocks.len());
        match blocks.get_mut(place) {
            Some(block) => block.push(numbered),
            None => blocks.push(vec![numbered]),
        }
    }
    blocks
}

/// Formats one call, this many milliseconds after its turn started.
fn call(text: &mut String, number: usize, record: &HookRecord, began: u64) {
    let _ = write!(
        text,
        "{:>5}  +{:<8} {:42} {:24} {:8} {:>9}",
        number + 1,
        format!("{} ms", record.at.saturating_sub(began)),
        shown(&record.hook.to_string()),
        shown(record.plugin.as_str()),
        shown(&record.outcome.to_string()),
        time(record.duration_ms),
    );
    if !matches!(record.decision, Decision::Continue | Decision::Skipped) {
        let _ = write!(text, "  {}", decision(record.decision));
    }
    if !record.changed.is_empty() {
        let _ = write!(text, " {}", shown(&record.changed.join(" ")));
    }
    if let Some(message) = &record.message {
        let _ = write!(
            text,
            "  {}",
            shown(message.lines().next().unwrap_or_default())
        );
    }
    text.push('\n');
    text.push_str(&changes::lines(&record.values));
}

fn decision(decision: Decision) -> &'static str {
    match decision {
        Decision::Continue => "continue",
        Decision::Patch => "patch",
        Decision::Block => "block",
        Decision::Refused => "refused",
        Decision::FailedOpen => "failed open",
        Decision::FailedClosed => "failed closed",
        Decision::Skipped => "skipped",
    }
}

/// Formats a count: `once`, `twice`, `3 times`.
pub(crate) fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// `plugin top`: shows the resource usage of a running server's plugins every second until interrupted.
pub(crate) async fn top(remote: &Remote, once: bool) -> Result<u8, Failure> {
    loop {
        let answer: Value = remote.get("/outrigger/plugin").await?;
        let screen = screen(&answer);
        if once {
            out(&screen);
            return Ok(0);
        }
        terminal::screen(&screen);
        if terminal::is_lost() {
            return Ok(0);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn screen(answer: &Value) -> String {
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let mut text = format!(
        "{:28} {:12} {:>8} {:>7} {:>9} {:>10} {:>6} {:>4}\n",
        "PLUGIN", "STAGE", "PID", "CPU", "OWN CPU", "MEMORY", "PROCS", "GEN"
    );
    let plugins = list("plugins");
    let pids: Vec<Option<u64>> = plugins.iter().map(|it| it["pid"].as_u64()).collect();
    let shares =
        |pid: Option<u64>| pid.is_some() && pids.iter().filter(|it| **it == pid).count() > 1;
    for plugin in &plugins {
        let shared = shares(plugin["pid"].as_u64());
        let usage = &plugin["usage"];
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let mark = |value: String| if shared { format!("{value}*") } else { value };
        text.push_str(&crate::terminal::one_line(format_args!(
            "{:28} {:12} {:>8} {:>7} {:>9} {:>10} {:>6} {:>4}{}",
            plugin["id"].as_str().unwrap_or_default(),
            plugin["stage"].as_str().unwrap_or_default(),
            shown(plugin["pid"].as_u64().map(|pid| pid.to_string())),
            shown(
                usage["cpu"]
                    .as_f64()
                    .map(|cpu| mark(format!("{:.0} %", cpu * 100.0)))
            ),
            time(plugin["own_cpu_ms"].as_f64().unwrap_or_default()),
            shown(
                usage["rss"]
                    .as_u64()
                    .map(|rss| mark(format!("{} MiB", rss >> 20)))
            ),
            shown(usage["processes"].as_u64().map(|n| mark(n.to_string()))),
            plugin["generation"].as_u64().unwrap_or_default(),
            notes(plugin)
        )));
    }
    if plugins.iter().any(|plugin| shares(plugin["pid"].as_u64())) {
        text.push_str("* of a process that several plugins share; OWN CPU is what is known to be a plugin's since the start\n");
    }
    let rows: Vec<PerfRow> = serde_json::from_value(answer["perf"].clone()).unwrap_or_default();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(&rows));
    }
    text
}

/// Formats a plugin's current activity and its problems, after its row.
fn notes(plugin: &Value) -> String {
    let mut words = Vec::new();
    let entered: Vec<&str> = plugin["entered"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !entered.is_empty() {
        words.push(format!("in {} now", entered.join(", ")));
    }
    for breaker in plugin["breakers"].as_array().into_iter().flatten() {
        let hook = breaker["hook"].as_str().unwrap_or_default();
        let state = breaker["state"].as_str().unwrap_or_default();
        words.push(match (state, breaker["timeouts"].as_u64()) {
            ("closed", Some(timeouts)) => format!("{hook} timed out {} lately", times(timeouts)),
            _ => format!("{hook} {}", state.replace('_', " ")),
        });
    }
    if let Some(cause) = plugin["quarantine"].as_str() {
        words.push(format!("apart: {cause}"));
    }
    if let Some(message) = plugin["cause"]["message"].as_str() {
        words.push(message.to_owned());
    }
    if words.is_empty() {
        String::new()
    } else {
        format!("  {}", words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::hook::OutcomeKind;

    /// The request for a title is a separate, concurrent turn.
    #[test]
    fn a_turn_is_one_block_whatever_comes_between() {
        let record = |turn: Option<&str>, hook: &str, at: u64| HookRecord {
            turn: turn.map(Into::into),
            duration_ms: 1.0,
            at,
            ..HookRecord::new(hook, hook, "p".into(), OutcomeKind::Ok)
        };
        let records = [
            record(Some("trn_1"), "chat.message", 1000),
            record(Some("trn_2"), "chat.params", 1020),
            record(Some("trn_1"), "chat.params", 1030),
            record(None, "config", 1040),
            record(Some("trn_2"), "chat.headers", 1050),
            record(Some("trn_1"), "chat.headers", 1060),
        ];
        let lines = traced(&records);
        let lines: Vec<String> = lines
            .lines()
            .map(|line| {
                line.split_whitespace()
                    .take(4)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(
            lines,
            [
                "trn_1",
                "1 +0 ms chat.message",
                "3 +30 ms chat.params",
                "6 +60 ms chat.headers",
                "trn_2",
                "2 +0 ms chat.params",
                "5 +30 ms chat.headers",
                "outside a turn",
                "4 +0 ms config",
            ]
        );
    }
}
