//! Cost and history of a plugin from the log: the records of its hook calls and the notices about it (A1). For `outrigger
//! doctor`.

use std::collections::BTreeMap;

use outrigger_protocol::event::CustomEvent;
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::TurnId;
use outrigger_protocol::rpc::RanCalls;
use serde::Serialize;
use serde_json::Value;

use crate::perf::{Histogram, rounded};

/// Prefix of events about plugins.
const NOTICE: &str = "outrigger.plugin.";

/// Cost of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Plugin.
    pub plugin: String,
    /// Turns in which it was called.
    pub turns: u64,
    /// Median of the milliseconds that a turn waited for all its hooks.
    pub turn_p50_ms: f64,
    /// 95th percentile of the same.
    pub turn_p95_ms: f64,
    /// Milliseconds in all calls, including those outside turns.
    pub total_ms: f64,
    /// Number of calls of its hooks.
    pub calls: u64,
    /// The hook that took most of the time.
    pub costliest: Option<String>,
    /// Calls that missed their deadline, by hook.
    pub timeouts: BTreeMap<String, u64>,
    /// Calls that threw.
    pub errors: u64,
    /// Calls whose process exited.
    pub lost: u64,
    /// Calls that were skipped (breaker open, turn cancelled, process exited).
    pub skipped: u64,
    /// Number of times that a breaker opened, by hook.
    pub opened: BTreeMap<String, u64>,
    /// Number of times that its process was restarted, through its own fault or an unknown one.
    pub restarts: u64,
    /// Cause of the last restart.
    pub restart_cause: Option<String>,
    /// Number of restarts caused by other plugins in its process, by plugin.
    pub restarts_by_others: BTreeMap<String, u64>,
    /// CPU time in milliseconds attributed to it (see `HookRecord::cpu_ms`).
    pub cpu_ms: f64,
    /// Why it was last moved to its own process.
    pub quarantine: Option<String>,
    /// Why it was last switched off for the rest of a run.
    pub off: Option<String>,
}

#[derive(Default)]
struct Sums {
    turns: BTreeMap<TurnId, f64>,
    hooks: BTreeMap<String, f64>,
    cost: Cost,
}

/// Sums up the log.
#[derive(Default)]
pub struct Costs(BTreeMap<String, Sums>);

impl Costs {
    fn of(&mut self, plugin: &str) -> &mut Sums {
        self.0.entry(plugin.to_owned()).or_default()
    }

    /// Adds a call.
    pub fn add(&mut self, record: &HookRecord) {
        let sums = self.of(record.plugin.as_str());
        let hook = &record.hook;
        sums.cost.cpu_ms += record.cpu_ms.unwrap_or_default();
        match record.outcome {
            OutcomeKind::Skipped => {
                sums.cost.skipped += 1;
                return;
            }
            OutcomeKind::Timeout => *sums.cost.timeouts.entry(hook.clone()).or_default() += 1,
            OutcomeKind::Lost => sums.cost.lost += 1,
            OutcomeKind::Error => sums.cost.errors += 1,
            _ => {}
        }
        sums.cost.calls += 1;
        sums.cost.total_ms += record.duration_ms;
        *sums.hooks.entry(hook.clone()).or_default() += record.duration_ms;
        if let Some(turn) = &record.turn {
            *sums.turns.entry(turn.clone()).or_default() += record.duration_ms;
        }
    }

    /// Adds calls of a background hook.
    pub fn observed(&mut self, calls: &RanCalls) {
        let sums = self.of(calls.plugin.as_str());
        let ms: f64 = calls.ms.iter().sum();
        sums.cost.calls += calls.ms.len() as u64;
        sums.cost.total_ms += ms;
        *sums.hooks.entry(calls.hook.clone()).or_default() += ms;
    }

    /// Adds a report about a plugin; other events are skipped.
    pub fn notified(&mut self, event: &CustomEvent) {
        let Some(kind) = event.kind.strip_prefix(NOTICE) else {
            return;
        };
        let text = |name: &str| event.properties.get(name).and_then(Value::as_str);
        let cause = text("cause").map(str::to_owned);
        if kind == "restart" {
            let plugins = event.properties.get("plugins").and_then(Value::as_array);
            let culprit = text("culprit");
            for plugin in plugins.into_iter().flatten().filter_map(Value::as_str) {
                let cost = &mut self.of(plugin).cost;
                if let Some(other) = culprit.filter(|culprit| *culprit != plugin) {
                    *cost.restarts_by_others.entry(other.to_owned()).or_default() += 1;
                    continue;
                }
                cost.restarts += 1;
                cost.restart_cause.clone_from(&cause);
            }
            return;
        }
        let Some(plugin) = text("plugin") else { return };
        match kind {
            "quarantine" => self.of(plugin).cost.quarantine = cause,
            "off" => self.of(plugin).cost.off = cause,
            "breaker" if text("state") == Some("open") => {
                let hook = text("hook").unwrap_or_default().to_owned();
                *self.of(plugin).cost.opened.entry(hook).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Returns the costs, the plugin with the largest time first.
    #[must_use]
    pub fn rows(self) -> Vec<Cost> {
        let row = |(plugin, sums): (String, Sums)| {
            let mut turns = Histogram::default();
            sums.turns.values().for_each(|ms| turns.add(*ms));
            let costliest = sums.hooks.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
            Cost {
                plugin,
                turns: u64::try_from(sums.turns.len()).unwrap_or(u64::MAX),
                turn_p50_ms: rounded(turns.quantile(0.50)),
                turn_p95_ms: rounded(turns.quantile(0.95)),
                total_ms: rounded(sums.cost.total_ms),
                cpu_ms: rounded(sums.cost.cpu_ms),
                costliest: costliest.map(|(hook, _)| hook),
                ..sums.cost
            }
        };
        let mut rows: Vec<Cost> = self.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
        rows
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(
        plugin: &str,
        hook: &str,
        turn: Option<&str>,
        outcome: OutcomeKind,
        ms: f64,
    ) -> HookRecord {
        HookRecord {
            turn: turn.map(Into::into),
            duration_ms: ms,
            ..HookRecord::new(hook, hook, plugin.into(), outcome)
        }
    }

    fn notice(kind: &str, properties: Value) -> CustomEvent {
        CustomEvent {
            depth: 0,
            kind: kind.to_owned(),
            properties: properties.as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn calls_are_added_up_by_turn_and_notices_by_plugin() {
        let mut costs = Costs::default();
        let spun = HookRecord {
            cpu_ms: Some(450.0),
            ..record("b", "chat.params", Some("t1"), OutcomeKind::Timeout, 500.0)
        };
        for record in [
            record("a", "chat.params", Some("t1"), OutcomeKind::Ok, 10.0),
            record("a", "chat.message", Some("t1"), OutcomeKind::Error, 20.0),
            record("a", "chat.params", Some("t2"), OutcomeKind::Ok, 50.0),
            record("a", "config", None, OutcomeKind::Ok, 5.0),
            spun,
            record("b", "chat.params", Some("t2"), OutcomeKind::Skipped, 0.0),
            record("b", "event", None, OutcomeKind::Lost, 0.0),
        ] {
            costs.add(&record);
        }
        for (kind, properties) in [
            (
                "outrigger.plugin.breaker",
                json!({"plugin": "b", "hook": "chat.params", "state": "open"}),
            ),
            (
                "outrigger.plugin.breaker",
                json!({"plugin": "b", "hook": "chat.params", "state": "half_open"}),
            ),
            (
                "outrigger.plugin.restart",
                json!({"plugins": ["a", "b"], "cause": "first"}),
            ),
            (
                "outrigger.plugin.restart",
                json!({"plugins": ["a", "b"], "cause": "second", "culprit": "b"}),
            ),
            (
                "outrigger.plugin.quarantine",
                json!({"plugin": "b", "cause": "it hung"}),
            ),
            (
                "outrigger.plugin.off",
                json!({"plugin": "c", "cause": "often"}),
            ),
            ("session.idle", json!({"plugin": "d"})),
        ] {
            costs.notified(&notice(kind, properties));
        }
        let rows = costs.rows();
        let names: Vec<&str> = rows.iter().map(|row| row.plugin.as_str()).collect();
        assert_eq!(names, ["b", "a", "c"]);
        let b = &rows[0];
        assert_eq!((b.turns, b.calls, b.skipped, b.lost), (1, 2, 1, 1));
        assert_eq!(b.timeouts, BTreeMap::from([("chat.params".to_owned(), 1)]));
        assert_eq!(b.opened, BTreeMap::from([("chat.params".to_owned(), 1)]));
        assert_eq!(
            (
                b.restarts,
                b.restart_cause.as_deref(),
                b.quarantine.as_deref()
            ),
            (2, Some("second"), Some("it hung"))
        );
        let a = &rows[1];
        assert_eq!((a.turns, a.calls, a.errors, a.restarts), (2, 4, 1, 1));
        assert_eq!(a.restarts_by_others, BTreeMap::from([("b".to_owned(), 1)]));
        assert_eq!((a.cpu_ms, b.cpu_ms), (0.0, 450.0));
        assert_eq!(a.costliest.as_deref(), Some("chat.params"));
        assert!((30.0..33.0).contains(&a.turn_p50_ms), "{a:?}");
        assert!((50.0..55.0).contains(&a.turn_p95_ms), "{a:?}");
        assert_eq!(rows[2].off.as_deref(), Some("often"));
    }
}
