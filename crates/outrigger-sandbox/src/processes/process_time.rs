//! The time in which processes run: like `tokio::time`, but it stands still while they are frozen ([`crate::Spawner::freeze`]).
//!
//! Everything that waits for a process with a limit, or measures one, takes its time from here: a process is neither late nor silent nor
//! slow because it was frozen. There is one such time in a host, as there is one thread that starts its processes.

use std::ops::{Add, Sub};
use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::unconstrained;
use tokio::time;

/// A limit that is too long to be added to a time is replaced by this one, as in tokio.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

static PAUSES: LazyLock<watch::Sender<Pauses>> = LazyLock::new(watch::Sender::default);

#[derive(Debug, Clone, Copy, Default)]
struct Pauses {
    /// Number of open pauses: there may be several hosts in one test.
    open: usize,
    /// When the first of them began.
    since: Option<time::Instant>,
    /// Length of all that are over.
    over: Duration,
}

/// The time stands still until it is dropped.
pub(crate) struct Pause(());

impl Pause {
    pub(crate) fn begin() -> Self {
        PAUSES.send_modify(|it| {
            it.open += 1;
            it.since.get_or_insert_with(time::Instant::now);
        });
        Self(())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        PAUSES.send_modify(|it| {
            it.open -= 1;
            if it.open == 0 {
                it.over += it.since.take().map_or(Duration::ZERO, |it| it.elapsed());
            }
        });
    }
}

/// A point in this time. It is not comparable with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(time::Instant);

impl Instant {
    /// Returns the present.
    #[must_use]
    pub fn now() -> Self {
        let pauses = *PAUSES.borrow();
        Self(pauses.since.unwrap_or_else(time::Instant::now) - pauses.over)
    }

    /// Returns how long processes have run since then.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    /// Returns the time from an earlier point to this one; zero if it is later.
    #[must_use]
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the point after this time; `None` if it is too far away.
    #[must_use]
    pub fn checked_add(self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        self.checked_add(time).unwrap_or_else(|| Self(self.0 + FAR))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

/// The limit of a [`timeout`] has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time limit has passed")]
pub struct Elapsed;

/// Returns whether processes are frozen now.
#[must_use]
pub fn is_frozen() -> bool {
    PAUSES.borrow().since.is_some()
}

/// Waits until no processes are frozen.
pub async fn thawed() {
    // Its sender is never dropped.
    drop(PAUSES.subscribe().wait_for(|it| it.since.is_none()).await);
}

/// Waits for this long.
pub async fn sleep(time: Duration) {
    sleep_until(Instant::now() + time).await;
}

/// Waits for this point.
pub async fn sleep_until(end: Instant) {
    loop {
        thawed().await;
        let left = end - Instant::now();
        if left.is_zero() {
            return;
        }
        time::sleep(left).await;
    }
}

/// Waits for `work`, for at most `limit`. It is on the heap, so that nested limits do not add up on the stack.
///
/// # Errors
/// [`Elapsed`] after the limit.
pub fn timeout<F: Future>(
    limit: Duration,
    work: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    timeout_at(Instant::now() + limit, work)
}

/// Waits for `work`, at most until `end`.
///
/// # Errors
/// [`Elapsed`] after it.
pub fn timeout_at<F: Future>(
    end: Instant,
    work: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let mut work = Box::pin(work);
    async move {
        tokio::select! {
            biased;
            done = &mut work => Ok(done),
            // Also if the work always uses up its share of the thread.
            () = unconstrained(sleep_until(end)) => Err(Elapsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_during_a_pause() {
        let second = Duration::from_secs(1);
        let (begun, real) = (Instant::now(), time::Instant::now());
        time::sleep(second).await;
        let mut late = std::pin::pin!(timeout(2 * second, std::future::pending::<()>()));
        let pause = Pause::begin();
        let also = Pause::begin();
        assert!(time::timeout(60 * second, &mut late).await.is_err());
        drop(also);
        assert!(time::timeout(60 * second, &mut late).await.is_err());
        assert_eq!((begun.elapsed(), is_frozen()), (second, true));
        drop(pause);
        assert_eq!(late.await, Err(Elapsed));
        assert_eq!(
            (begun.elapsed(), real.elapsed()),
            (3 * second, 123 * second)
        );
        assert_eq!(timeout(second, std::future::ready(7)).await, Ok(7));
        assert_eq!(timeout(Duration::MAX, std::future::ready(8)).await, Ok(8));
    }
}
