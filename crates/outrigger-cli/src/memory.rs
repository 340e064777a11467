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
        // Less counts as well: what was in use at the last look, and so stayed, may have left gaps since.
        if memory::resident().abs_diff(last) < CHANGED {
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
