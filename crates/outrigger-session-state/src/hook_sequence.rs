//! `[plugin-seq]` log lines: the plugin hooks that a turn called, in order, and how often each (A2).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use outrigger_kernel::hooks::{HookPoint, Phase};
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::TurnId;
use outrigger_store::{Scope, Store};

/// Target of these lines, so that they can be logged alone (`OUTRIGGER_LOG=plugin=debug`, A12).
const SEQ: &str = "plugin::seq";

/// Returns whether the lines are logged.
#[must_use]
pub fn is_logged() -> bool {
    tracing::enabled!(target: SEQ, tracing::Level::DEBUG)
}

/// Writes the line of a turn. The caller has waited until plugins were notified of everything that the turn reached.
pub async fn log(store: &Store, turn: &TurnId) {
    // Records of background hooks are written with the next transaction.
    if let Err(error) = store.flush(false).await {
        tracing::warn!(target: SEQ, "[plugin-seq] turn={turn}: {error}");
    }
    match store.hooks(Scope::Turn(turn)) {
        Ok(records) if records.is_empty() => {}
        Ok(records) => tracing::debug!(target: SEQ, "[plugin-seq] turn={turn} {}", line(&records)),
        Err(error) => tracing::warn!(target: SEQ, "[plugin-seq] turn={turn}: {error}"),
    }
}

/// Returns `counts=chat.message:2 sequence=chat.message(a,b) chat.params(a:timeout) notified=message.completed(a)`; neighbours
/// at one hook are joined. Notifications run beside the turn and are listed separately: among the awaited hooks their positions
/// would vary, and sequences could not be compared.
fn line(records: &[HookRecord]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(&record.hook).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(hook, n)| format!("{hook}:{n}"))
        .collect();
    let (notified, asked): (Vec<_>, Vec<_>) = records.iter().partition(|it| is_notified(it));
    let (asked, notified) = (sequence(&asked), sequence(&notified));
    format!(
        "counts={} sequence={asked} notified={notified}",
        counts.join(",")
    )
}

fn is_notified(record: &HookRecord) -> bool {
    let point = HookPoint::parse(&record.point);
    point.is_some_and(|point| point.spec().phase == Phase::Observe)
}

fn sequence(records: &[&HookRecord]) -> String {
    let mut sequence = String::new();
    let mut hook = "";
    for record in records {
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
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_order_with_neighbours_joined() {
        let record = |hook: &str, plugin: &str, outcome: OutcomeKind| {
            HookRecord::new(hook, hook, plugin.into(), outcome)
        };
        let records = [
            record("chat.message", "a", OutcomeKind::Ok),
            record("chat.message", "b", OutcomeKind::Ok),
            record("message.completed", "a", OutcomeKind::Ok),
            record("chat.params", "a", OutcomeKind::Timeout),
            record("chat.message", "a", OutcomeKind::Ok),
        ];
        assert_eq!(
            line(&records),
            "counts=chat.message:3,chat.params:1,message.completed:1 sequence=chat.message(a,b) chat.params(a:timeout) chat.message(a) notified=message.completed(a)"
        );
        assert_eq!(line(&[]), "counts= sequence= notified=");
    }
}
