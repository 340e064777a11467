//! The progress of an installation: a bar on a terminal, otherwise a line every few seconds.

use std::time::{Duration, Instant};

use outrigger_plugins::Fetched;

/// Interval of the lines without a terminal.
const PRINT_INTERVAL: Duration = Duration::from_secs(3);
/// Width of the bar.
const WIDTH: u64 = 24;

/// A running installation.
pub(crate) struct Fetching {
    spec: String,
    since: Instant,
    fetched: Option<Fetched>,
    said: Instant,
}

impl Fetching {
    pub(crate) fn new(spec: &str, now: Instant) -> Self {
        Self {
            spec: spec.to_owned(),
            since: now,
            fetched: None,
            said: now,
        }
    }

    /// Updates the progress.
    pub(crate) fn came(&mut self, fetched: Fetched) {
        self.fetched = Some(fetched);
    }

    /// For a terminal: `bun@1.4.5 [#####-------------------] 21.5 of 107.4 MB, 12.3 MB/s`.
    pub(crate) fn bar(&self, now: Instant) -> String {
        match &self.fetched {
            Some(Fetched {
                bytes,
                total: Some(total),
            }) => {
                let done = bytes.saturating_mul(WIDTH) / (*total).max(1);
                let done = usize::try_from(done.min(WIDTH)).unwrap_or(0);
                let left = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(done);
                let (done, left) = ("#".repeat(done), "-".repeat(left));
                format!("{} [{done}{left}] {}", self.spec, self.amount(now))
            }
            _ => format!("installing {}{}", self.spec, self.amount(now)),
        }
    }

    /// Returns a line for a file or a pipe, if one is due.
    pub(crate) fn line(&mut self, now: Instant) -> Option<String> {
        if now.saturating_duration_since(self.said) < PRINT_INTERVAL {
            return None;
        }
        self.said = now;
        let colon = if self.has_total() { ": " } else { "" };
        Some(format!(
            "installing {}{colon}{}",
            self.spec,
            self.amount(now)
        ))
    }

    fn has_total(&self) -> bool {
        self.fetched.is_some_and(|fetched| fetched.total.is_some())
    }

    /// Returns the amounts and the speed, or the seconds if nothing has been unpacked yet.
    fn amount(&self, now: Instant) -> String {
        let elapsed = now.saturating_duration_since(self.since);
        let Some(Fetched { bytes, total }) = self.fetched else {
            return format!(" {} s", elapsed.as_secs());
        };
        let rate = bytes
            .saturating_mul(1000)
            .checked_div(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
            .unwrap_or(0);
        match total {
            Some(total) => format!("{} of {} MB, {} MB/s", mb(bytes), mb(total), mb(rate)),
            None => format!(": {} MB, {} MB/s", mb(bytes), mb(rate)),
        }
    }
}

/// Formats megabytes with one decimal.
fn mb(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes / 100_000 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_much_of_how_much_and_how_fast() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut seen = String::new();
        for (bytes, total) in [
            (None, None),
            (Some(0), Some(107_400_000)),
            (Some(21_480_000), Some(107_400_000)),
            (Some(120_000_000), Some(107_400_000)),
            (Some(5_250_000), None),
        ] {
            let mut fetching = Fetching::new("bun@1.4.5", start);
            if let Some(bytes) = bytes {
                fetching.came(Fetched { bytes, total });
            }
            assert_eq!(fetching.line(at(2)), None, "too early");
            let line = fetching.line(at(4)).unwrap();
            assert_eq!(fetching.line(at(5)), None, "said just now");
            seen += &format!("{}\n{line}\n", fetching.bar(at(4)));
        }
        insta::assert_snapshot!(seen, @r"
        installing bun@1.4.5 4 s
        installing bun@1.4.5 4 s
        bun@1.4.5 [------------------------] 0.0 of 107.4 MB, 0.0 MB/s
        installing bun@1.4.5: 0.0 of 107.4 MB, 0.0 MB/s
        bun@1.4.5 [####--------------------] 21.4 of 107.4 MB, 5.3 MB/s
        installing bun@1.4.5: 21.4 of 107.4 MB, 5.3 MB/s
        bun@1.4.5 [########################] 120.0 of 107.4 MB, 30.0 MB/s
        installing bun@1.4.5: 120.0 of 107.4 MB, 30.0 MB/s
        installing bun@1.4.5: 5.2 MB, 1.3 MB/s
        installing bun@1.4.5: 5.2 MB, 1.3 MB/s
        ");
    }
}
