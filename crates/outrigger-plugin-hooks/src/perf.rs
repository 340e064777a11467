//! Cost of hook calls: counts, times and sizes for each hook of each plugin (A1).
//!
//! Times are kept in buckets that are an eighth of a doubling wide, so a percentile is at most 9 % too high, and the memory
//! of a running server does not grow with the number of calls.

use std::collections::BTreeMap;

use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::rpc::RanCalls;
use serde::{Deserialize, Serialize};

/// Buckets for each doubling.
const PER_DOUBLING: f64 = 8.0;
/// Upper bound of the first bucket, in milliseconds.
const LEAST: f64 = 0.01;
/// Number of buckets; the last one holds everything over about three hours.
const BUCKETS: usize = 242;

/// Times of calls, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// As long as the longest call needs.
    counts: Vec<u32>,
    total: u64,
    most: f64,
    sum: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, ms: f64) {
        let bucket = bucket(ms);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
        self.total += 1;
        self.most = self.most.max(ms);
        self.sum += ms;
    }

    /// Returns the time that this fraction of the calls did not exceed.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank among far fewer than 2^52 calls"
        )]
        let rank = ((part * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return upper(bucket).min(self.most);
            }
        }
        self.most
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by the number of buckets"
)]
fn bucket(ms: f64) -> usize {
    if ms <= LEAST {
        return 0;
    }
    (((ms / LEAST).log2() * PER_DOUBLING).ceil() as usize).min(BUCKETS - 1)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bounded by the number of buckets"
)]
fn upper(bucket: usize) -> f64 {
    LEAST * (bucket as f64 / PER_DOUBLING).exp2()
}

/// Cost of one hook of one plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerfRow {
    /// Id of the plugin.
    pub plugin: String,
    /// Hook, by the name under which plugins register it.
    pub hook: String,
    /// Calls that were made.
    pub calls: u64,
    /// Calls that were skipped (breaker, cancelled turn, exited process).
    pub skipped: u64,
    /// Calls by outcome: `ok`, `error`, `timeout`, `lost`, `blocked`.
    pub outcomes: BTreeMap<String, u64>,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 95 of 100 calls.
    pub p95_ms: f64,
    /// 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// The longest call in milliseconds.
    pub max_ms: f64,
    /// All calls together in milliseconds.
    pub total_ms: f64,
    /// The largest payload, in bytes.
    pub max_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Figures {
    times: Histogram,
    skipped: u64,
    outcomes: BTreeMap<String, u64>,
    max_bytes: u64,
}

/// Figures of all hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Perf(BTreeMap<(String, String), Figures>);

impl Perf {
    /// Adds a call.
    pub fn add(&mut self, record: &HookRecord) {
        // No handler was called: the plugin's request was refused.
        if record.outcome == OutcomeKind::Refused {
            return;
        }
        let key = (record.plugin.to_string(), record.hook.clone());
        let figures = self.0.entry(key).or_default();
        if record.outcome == OutcomeKind::Skipped {
            figures.skipped += 1;
            return;
        }
        figures.times.add(record.duration_ms);
        *figures
            .outcomes
            .entry(record.outcome.name().to_owned())
            .or_default() += 1;
        figures.max_bytes = figures.max_bytes.max(record.payload_bytes);
    }

    /// Adds calls of a background hook.
    pub fn observed(&mut self, calls: &RanCalls) {
        let key = (calls.plugin.to_string(), calls.hook.clone());
        let figures = self.0.entry(key).or_default();
        calls.ms.iter().for_each(|ms| figures.times.add(*ms));
        let ok = OutcomeKind::Ok.name().to_owned();
        *figures.outcomes.entry(ok).or_default() += calls.ms.len() as u64;
        figures.max_bytes = figures.max_bytes.max(calls.bytes);
    }

    /// Returns the figures, the most expensive hook first.
    #[must_use]
    pub fn rows(&self) -> Vec<PerfRow> {
        let row = |((plugin, hook), figures): (&(String, String), &Figures)| PerfRow {
            plugin: plugin.clone(),
            hook: hook.clone(),
            calls: figures.times.total,
            skipped: figures.skipped,
            outcomes: figures.outcomes.clone(),
            p50_ms: rounded(figures.times.quantile(0.50)),
            p95_ms: rounded(figures.times.quantile(0.95)),
            p99_ms: rounded(figures.times.quantile(0.99)),
            max_ms: rounded(figures.times.most),
            total_ms: rounded(figures.times.sum),
            max_bytes: figures.max_bytes,
        };
        let mut rows: Vec<PerfRow> = self.0.iter().map(row).collect();
        rows.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
        rows
    }
}

impl<'r> FromIterator<&'r HookRecord> for Perf {
    fn from_iter<I: IntoIterator<Item = &'r HookRecord>>(records: I) -> Self {
        let mut perf = Self::default();
        for record in records {
            perf.add(record);
        }
        perf
    }
}

pub(crate) fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(plugin: &str, hook: &str, outcome: OutcomeKind, ms: f64, bytes: u64) -> HookRecord {
        HookRecord {
            payload_bytes: bytes,
            duration_ms: ms,
            ..HookRecord::new(hook, hook, plugin.into(), outcome)
        }
    }

    #[test]
    fn percentiles_are_at_most_a_bucket_too_high_and_never_above_the_longest() {
        let mut times = Histogram::default();
        let all: Vec<f64> = (1..=1000).map(|n| f64::from(n) * 0.37).collect();
        for ms in &all {
            times.add(*ms);
        }
        for (part, exact) in [
            (0.5, all[499]),
            (0.95, all[949]),
            (0.99, all[989]),
            (1.0, all[999]),
        ] {
            let found = times.quantile(part);
            assert!(
                found >= exact && found <= exact * 1.0906,
                "{part}: {found} for {exact}"
            );
        }
        let mut one = Histogram::default();
        one.add(0.0);
        assert_eq!((one.quantile(0.5), one.quantile(0.99)), (0.0, 0.0));
        let mut huge = Histogram::default();
        huge.add(f64::from(u32::MAX));
        assert_eq!(
            huge.quantile(0.5),
            f64::from(u32::MAX).min(upper(BUCKETS - 1))
        );
        assert!(huge.counts.len() <= BUCKETS);
    }

    #[test]
    fn skipped_calls_cost_nothing_and_the_costliest_comes_first() {
        let records = [
            record("a", "chat.params", OutcomeKind::Ok, 1.0, 10),
            record("b", "chat.params", OutcomeKind::Timeout, 5000.0, 20),
            record("b", "chat.params", OutcomeKind::Skipped, 0.0, 0),
            record("a", "chat.params", OutcomeKind::Error, 2.0, 30),
        ];
        let rows = Perf::from_iter(&records).rows();
        let lines: Vec<String> = rows
            .iter()
            .map(|row| {
                format!(
                    "{} calls {} skipped {} {:?} max {} bytes {}",
                    row.plugin, row.calls, row.skipped, row.outcomes, row.max_ms, row.max_bytes
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                r#"b calls 1 skipped 1 {"timeout": 1} max 5000 bytes 20"#,
                r#"a calls 2 skipped 0 {"error": 1, "ok": 1} max 2 bytes 30"#
            ]
        );
    }
}
