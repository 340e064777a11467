//! Events that a process was sent and has not processed.

use std::collections::VecDeque;
use std::time::Duration;

use outrigger_sandbox::process_time::Instant;

/// Batches of events that no hook has returned from yet.
#[derive(Default)]
pub(super) struct Unseen {
    /// Number of events in each.
    batches: VecDeque<usize>,
    /// When the last one was processed, or the first of these was sent.
    since: Option<Instant>,
}

impl Unseen {
    pub(super) fn push(&mut self, events: usize) {
        if self.batches.is_empty() {
            self.since = Some(Instant::now());
        }
        self.batches.push_back(events);
    }

    pub(super) fn leave(&mut self) {
        self.batches.pop_front();
        self.since = Some(Instant::now());
    }

    /// Returns the number of these events.
    pub(super) fn events(&self) -> usize {
        self.batches.iter().sum()
    }

    /// Returns for how long there have been some without progress.
    pub(super) fn age(&self) -> Option<Duration> {
        let since = self.since.filter(|_| !self.batches.is_empty())?;
        Some(since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_goes_on_is_not_behind_however_much_waits() {
        let mut unseen = Unseen::default();
        assert_eq!((unseen.events(), unseen.age()), (0, None));
        unseen.push(3);
        unseen.push(4);
        let first = unseen.since.unwrap();
        std::thread::sleep(Duration::from_millis(30));
        assert!(unseen.age() >= Some(Duration::from_millis(30)));
        unseen.leave();
        assert_eq!(unseen.events(), 4);
        assert!(unseen.since.unwrap() >= first + Duration::from_millis(30));
        unseen.leave();
        assert_eq!((unseen.events(), unseen.age()), (0, None));
    }
}
