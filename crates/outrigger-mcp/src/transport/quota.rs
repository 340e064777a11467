//! A rate limit per second.

use std::time::Duration;

use outrigger_sandbox::process_time::{self, Instant};

const WINDOW: Duration = Duration::from_secs(1);

/// Counts the cost within a second.
#[derive(Debug)]
pub(crate) struct Quota {
    most: u64,
    used: u64,
    since: Instant,
}

impl Quota {
    /// Creates a limit of `most` per second.
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            used: 0,
            since: Instant::now(),
        }
    }

    /// Returns whether `cost` more is within the limit. It is counted either way; once per second, the result contains
    /// the excess of the previous second.
    pub(crate) fn take(&mut self, cost: u64) -> QuotaResult {
        let mut over = 0;
        if self.since.elapsed() >= WINDOW {
            over = self.used.saturating_sub(self.most);
            self.used = 0;
            self.since = Instant::now();
        }
        self.used = self.used.saturating_add(cost);
        QuotaResult {
            within: self.used <= self.most,
            over,
        }
    }

    /// Waits for the next second if the limit is reached: the full pipe then blocks the server.
    pub(crate) async fn hold(&mut self, cost: u64) {
        if !self.take(cost).within {
            process_time::sleep_until(self.since + WINDOW).await;
        }
    }
}

/// The result of [`Quota::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaResult {
    pub(crate) within: bool,
    /// The excess of the previous second.
    pub(crate) over: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_over_is_reported_in_the_next_second() {
        let mut quota = Quota::new(2);
        let taken: Vec<bool> = (0..4).map(|_| quota.take(1).within).collect();
        assert_eq!(taken, [true, true, false, false]);
        tokio::time::sleep(WINDOW).await;
        assert_eq!(
            quota.take(1),
            QuotaResult {
                within: true,
                over: 2
            }
        );
    }
}
