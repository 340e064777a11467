//! A server lives long: memory that a burst took goes back to the system afterwards.

use std::time::Duration;

use outrigger_sandbox::memory;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// Changed by less than this since memory was given back, it is left alone.
const CHANGED: u64 = 1 << 20;

/// Looks now and then until it is dropped.
pub(crate) async fn give_back() {
    let mut last = memory::resident();
    loop {
        tokio::time::sleep(EVERY).await;
        if !is_due(last, memory::resident()) {
            continue;
        }
        // It takes locks that allocations of other threads may need, but for a few milliseconds only.
        let given = tokio::task::spawn_blocking(|| {
            memory::give_back_gaps();
            memory::resident()
        });
        match given.await {
            Ok(now) => last = now,
            Err(_) => return,
        }
    }
}

/// Whether there may be gaps that were not there, or not yet gaps, when memory was given back. Less counts as well: what was
/// in use then, and so stayed, may have left some since.
fn is_due(after_last: u64, now: u64) -> bool {
    now.abs_diff(after_last) >= CHANGED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_when_it_has_changed_either_way() {
        const MIB: u64 = 1 << 20;
        for (after_last, now, due) in [
            (20 * MIB, 20 * MIB, false),
            (20 * MIB, 21 * MIB - 1, false),
            (20 * MIB, 21 * MIB, true),
            // A large payload was in use at the last look and has gone since.
            (42 * MIB, 30 * MIB, true),
            (42 * MIB, 42 * MIB - 4096, false),
        ] {
            assert_eq!(is_due(after_last, now), due, "{after_last} {now}");
        }
    }
}
