//! Limits how often something is reported. Records caused by others (above all refusals) must be bounded: a limited
//! number per period is reported, the rest is counted, and the next report includes the count.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Counts reports within a period.
#[derive(Clone, Debug)]
pub struct Tally {
    most: u32,
    period: Duration,
    since: Option<Instant>,
    reported: u32,
    unreported: u64,
}

impl Tally {
    /// Creates a limit of `most` within each `period`.
    #[must_use]
    pub fn new(most: u32, period: Duration) -> Self {
        Self {
            most,
            period,
            since: None,
            reported: 0,
            unreported: 0,
        }
    }

    /// Returns whether to report this one: if so, the number counted since the last report; `None` if it is only
    /// counted.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        if self.is_over(now) {
            (self.since, self.reported) = (Some(now), 0);
        }
        if self.reported >= self.most {
            self.unreported += 1;
            return None;
        }
        self.reported += 1;
        Some(std::mem::take(&mut self.unreported))
    }

    /// Returns how many were not reported yet; resets the count.
    pub fn rest(&mut self) -> u64 {
        std::mem::take(&mut self.unreported)
    }

    /// Returns whether the limit has just been exceeded by one.
    #[must_use]
    pub fn has_just_filled(&self) -> bool {
        self.unreported == 1
    }

    /// Returns whether the period is over.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        self.since
            .is_none_or(|since| now.saturating_duration_since(since) >= self.period)
    }
}

/// A [`Tally`] for each of several sources. Quiet sources are forgotten; if there are more than the maximum, the latest
/// ones share one.
#[derive(Clone, Debug)]
pub struct Tallies<K> {
    new: Tally,
    most_keys: usize,
    keys: HashMap<K, Tally>,
    others: Tally,
}

impl<K: Eq + Hash + Clone> Tallies<K> {
    /// Creates a limit of `most` per source within each `period`, with separate counts for up to `most_keys` sources.
    #[must_use]
    pub fn new(most: u32, period: Duration, most_keys: usize) -> Self {
        let new = Tally::new(most, period);
        Self {
            others: new.clone(),
            new,
            most_keys,
            keys: HashMap::new(),
        }
    }

    /// Like [`Tally::take`], for this source.
    pub fn take(&mut self, key: &K, now: Instant) -> Option<u64> {
        if let Some(tally) = self.keys.get_mut(key) {
            return tally.take(now);
        }
        if self.keys.len() >= self.most_keys {
            self.keys
                .retain(|_, tally| tally.unreported > 0 || !tally.is_over(now));
        }
        if self.keys.len() >= self.most_keys {
            return self.others.take(now);
        }
        let tally = self.keys.entry(key.clone());
        tally.or_insert_with(|| self.new.clone()).take(now)
    }

    /// Returns what was counted and not reported, by source; `None` for those that share a count.
    pub fn rest(&mut self) -> Vec<(Option<K>, u64)> {
        let mut rest: Vec<_> = self
            .keys
            .iter_mut()
            .map(|(key, tally)| (Some(key.clone()), tally.rest()))
            .collect();
        rest.push((None, self.others.rest()));
        rest.retain(|(_, count)| *count > 0);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_over_the_limit_is_counted_and_the_count_is_reported() {
        let begun = Instant::now();
        let mut tally = Tally::new(2, MINUTE);
        let mut at = |seconds| tally.take(begun + Duration::from_secs(seconds));
        assert_eq!(
            [at(0), at(1), at(2), at(59)],
            [Some(0), Some(0), None, None]
        );
        assert_eq!([at(60), at(61), at(62)], [Some(2), Some(0), None]);
        assert!(tally.has_just_filled());
        assert_eq!((tally.rest(), tally.rest()), (1, 0));
    }

    #[test]
    fn sources_do_not_cost_each_other_and_their_number_is_bounded() {
        let now = Instant::now();
        let mut tallies = Tallies::new(1, MINUTE, 2);
        let mut take = |key| tallies.take(&key, now);
        assert_eq!([take(1), take(1), take(2)], [Some(0), None, Some(0)]);
        // The third and the fourth share what is left.
        assert_eq!([take(3), take(4), take(2)], [Some(0), None, None]);
        let mut rest = tallies.rest();
        rest.sort();
        assert_eq!(rest, [(None, 1), (Some(1), 1), (Some(2), 1)]);
        // Quiet ones make room.
        assert_eq!(tallies.take(&3, now + MINUTE), Some(0));
        assert_eq!(tallies.take(&3, now + MINUTE), None);
        assert_eq!(tallies.rest(), [(Some(3), 1)]);
    }
}
