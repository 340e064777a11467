//! Failures of background hooks (`event`, `dispose`): recorded like any other failure (C5, C13), up to a limit per minute; the
//! rest is counted.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::Millis;
use outrigger_protocol::hook::{Decision, HookRecord, OutcomeKind};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::rpc::HookFailed;
use outrigger_stdx::sync::lock;
use outrigger_stdx::tally::Tally;

/// Maximum number of failures of one process recorded within [`MINUTE`]: an `event` hook may fail at every event.
pub(crate) const MAX_FAILURES: u32 = 30;
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of characters recorded of an error.
const MAX_TEXT: usize = 500;

/// Failures of one process.
pub(crate) struct Failures {
    tally: Mutex<Tally>,
    now: fn() -> Millis,
}

impl Failures {
    pub(crate) fn new(now: fn() -> Millis) -> Self {
        Self {
            tally: Mutex::new(Tally::new(MAX_FAILURES, MINUTE)),
            now,
        }
    }

    /// Returns the record of a failure; `full` is called when the first one is not recorded.
    pub(crate) fn record(&self, failed: HookFailed, full: impl FnOnce()) -> Option<HookRecord> {
        let unreported = {
            let mut tally = lock(&self.tally);
            let unreported = tally.take(Instant::now());
            let is_full = tally.has_just_filled();
            drop(tally);
            if unreported.is_none() && is_full {
                full();
            }
            unreported?
        };
        let point = HookPoint::parse(&failed.hook)?;
        let message = counted(&failed.message, MAX_TEXT, unreported, "failures");
        tracing::warn!(
            "plugin {}: {} hook failed: {message}",
            failed.plugin,
            point.hook()
        );
        Some(HookRecord {
            session: failed.session,
            decision: Decision::FailedOpen,
            duration_ms: if failed.ms.is_finite() {
                failed.ms.max(0.0)
            } else {
                0.0
            },
            message: Some(message),
            at: (self.now)(),
            ..HookRecord::new(
                point.name(),
                point.hook(),
                PluginId(failed.plugin),
                OutcomeKind::Error,
            )
        })
    }
}

/// Truncates a text for a record, and adds the number of unrecorded ones of its kind before it.
pub fn counted(text: &str, most: usize, unreported: u64, what: &str) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if unreported > 0 {
        shown.push_str(&format!(" ({unreported} earlier {what} are not listed)"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_written_down_and_the_rest_is_counted() {
        let failures = Failures::new(|| 7);
        let mut full = 0;
        let mut records = Vec::new();
        let failed = |hook: &str| HookFailed {
            plugin: "p".to_owned(),
            hook: hook.to_owned(),
            message: "x".repeat(2 * MAX_TEXT),
            session: None,
            ms: 2.5,
        };
        for _ in 0..3 * MAX_FAILURES {
            records.extend(failures.record(failed("event"), || full += 1));
        }
        assert_eq!((records.len(), full), (MAX_FAILURES as usize, 1));
        let first = &records[0];
        assert_eq!(
            (first.point.as_str(), first.outcome.name(), first.at),
            ("session.on_event", "error", 7)
        );
        assert_eq!(first.message.as_ref().map(String::len), Some(MAX_TEXT));
        assert!((first.duration_ms - 2.5).abs() < f64::EPSILON);
        // Only hooks of the table are named.
        assert!(
            Failures::new(|| 7)
                .record(failed("nonsense"), || {})
                .is_none()
        );
    }
}
