//! Returns memory of a burst to the system, because a server lives long.

use std::time::Duration;

use outrigger_sandbox::memory;

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// If less than this changed since memory was last returned, nothing is done.
const CHANGED: u64 = 1 << 20;

/// Checks periodically until it is dropped.
pub(crate) async fn give_back() {
    let mut last = memory::resident();
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if !is_due(last, memory::resident()) {
            continue;
        }
        // It takes locks that allocations of other threads may need, but only for a few milliseconds.
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

/// Returns whether there may be gaps that did not exist when memory was last returned. A decrease counts as well: what was
/// in use then may have left some since.
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
            // A large payload was in use at the last check and has been freed since.
            (42 * MIB, 30 * MIB, true),
            (42 * MIB, 42 * MIB - 4096, false),
        ] {
            assert_eq!(is_due(after_last, now), due, "{after_last} {now}");
        }
    }
}
