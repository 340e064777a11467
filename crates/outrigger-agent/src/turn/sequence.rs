//! `[plugin-seq]`: which hooks of plugins a turn called, in order, and how often each (A2).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::TurnId;
use outrigger_store::Scope;

use crate::state::Inner;

/// The target of these lines, so that they can be logged alone (`OUTRIGGER_LOG=plugin=debug`, A12).
const SEQ: &str = "plugin::seq";

/// Writes the line of a turn to the log, where anyone wants it.
pub(crate) fn log(inner: &Inner, turn: &TurnId) {
    if !tracing::enabled!(target: SEQ, tracing::Level::DEBUG) {
        return;
    }
    match inner.store.hooks(Scope::Turn(turn)) {
        Ok(records) if records.is_empty() => {}
        Ok(records) => tracing::debug!(target: SEQ, "[plugin-seq] turn={turn} {}", line(&records)),
        Err(error) => tracing::warn!(target: SEQ, "[plugin-seq] turn={turn}: {error}"),
    }
}

/// `counts=chat.message:2 sequence=chat.message(a,b) chat.params(a:timeout)`; neighbours at one hook are joined.
fn line(records: &[HookRecord]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sequence = String::new();
    let mut hook = "";
    for record in records {
        *counts.entry(&record.hook).or_default() += 1;
        if record.hook == hook {
            sequence.push(',');
        } else {
            if !hook.is_empty() {
                sequence.push_str(") ");
            }
            let _ = write!(sequence, "{}(", record.hook);
            hook = &record.hook;
        }
        sequence.push_str(record.plugin.as_str());
        if record.outcome != OutcomeKind::Ok {
            let _ = write!(sequence, ":{}", record.outcome);
        }
    }
    if !hook.is_empty() {
        sequence.push(')');
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(hook, n)| format!("{hook}:{n}"))
        .collect();
    format!("counts={} sequence={sequence}", counts.join(","))
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::hook::Decision;

    use super::*;

    #[test]
    fn calls_in_order_with_neighbours_joined() {
        let record = |hook: &str, plugin: &str, outcome: OutcomeKind| HookRecord {
            point: hook.to_owned(),
            hook: hook.to_owned(),
            plugin: plugin.into(),
            session: None,
            turn: None,
            outcome,
            decision: Decision::Continue,
            payload_bytes: 0,
            carried: None,
            cpu_ms: None,
            duration_ms: 0.0,
            changed: Vec::new(),
            message: None,
            at: 0,
            audit: Default::default(),
        };
        let records = [
            record("chat.message", "a", OutcomeKind::Ok),
            record("chat.message", "b", OutcomeKind::Ok),
            record("chat.params", "a", OutcomeKind::Timeout),
            record("chat.message", "a", OutcomeKind::Ok),
        ];
        assert_eq!(
            line(&records),
            "counts=chat.message:3,chat.params:1 sequence=chat.message(a,b) chat.params(a:timeout) chat.message(a)"
        );
        assert_eq!(line(&[]), "counts= sequence=");
    }
}
