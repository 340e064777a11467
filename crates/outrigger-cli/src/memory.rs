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
        if !has_changed(last, memory::resident()) {
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

/// Whether there may be something to give back: `last` was resident after memory was given back, `now` is, in bytes.
/// Less counts as well: what was in use at the last look, and so stayed, may have left gaps since.
fn has_changed(last: u64, now: u64) -> bool {
    now.abs_diff(last) >= CHANGED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_whenever_it_has_grown_or_fallen() {
        const MIB: u64 = 1 << 20;
        for (what, looks) in [
            (
                "steady",
                [
                    (100 * MIB, false),
                    (100 * MIB + MIB - 1, false),
                    (99 * MIB + 1, false),
                ],
            ),
            (
                "grown",
                [(101 * MIB, true), (130 * MIB, true), (u64::MAX, true)],
            ),
            // Given back while a large payload was in use, which has been freed since and has left gaps.
            ("fallen", [(60 * MIB, true), (99 * MIB, true), (0, true)]),
        ] {
            for (now, due) in looks {
                assert_eq!(has_changed(100 * MIB, now), due, "{what}: {now}");
            }
        }
    }
}
