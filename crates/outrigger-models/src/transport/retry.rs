//! Deadlines and retries of requests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;

/// How long to wait for a provider. `None` waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From sending the request to the first byte of the response body. OpenCode's default: 5 minutes.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the stream (including comments that only keep the connection alive). OpenCode's
    /// default: 5 minutes.
    pub idle: Option<Duration>,
    /// From the first attempt to the end of the stream, including retries. OpenCode's default: none.
    pub total: Option<Duration>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_byte: Some(Duration::from_secs(300)),
            idle: Some(Duration::from_secs(300)),
            total: None,
        }
    }
}

/// When a request that failed before any content is retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries.
    pub max_retries: u32,
    /// Wait before the first retry; doubles each time.
    pub base: Duration,
    /// Maximum wait that we choose ourselves.
    pub cap: Duration,
    /// Maximum wait that a provider may request; beyond it the request fails with the requested wait.
    pub max_asked: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base: Duration::from_secs(2),
            cap: Duration::from_secs(30),
            max_asked: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// Returns the wait before retry `attempt` (1 for the first): doubled each time, capped, and randomised by a
    /// quarter so that several clients do not retry in step.
    #[must_use]
    pub(crate) fn backoff(&self, attempt: u32) -> Duration {
        let factor = 1u32
            .checked_shl(attempt.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let wait = self.base.saturating_mul(factor).min(self.cap);
        let spread = f64::from(u32::try_from(jitter() % 1000).unwrap_or(0)) / 1000.0;
        wait.mul_f64(0.75 + spread / 2.0)
    }
}

// Not for secrets: must only differ between processes.
fn jitter() -> u64 {
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    let mut z =
        u64::try_from(nanos & u128::from(u64::MAX)).unwrap_or(0) ^ u64::from(std::process::id());
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns whether the same request may succeed after a status: the AI SDK's list.
pub(crate) fn is_retryable_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// Returns the provider's requested wait: `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
pub(crate) fn asked_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|t| t.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    let then = SystemTime::from(date.timestamp());
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_asked_for_is_read_in_all_its_forms() {
        let now = UNIX_EPOCH + Duration::from_secs(1_445_412_480 - 10);
        let table: &[(&str, &str, Option<u64>)] = &[
            ("retry-after", "3", Some(3000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(10_000)),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("x-other", "3", None),
        ];
        for (name, value, want) in table {
            let mut headers = HeaderMap::new();
            headers.insert(*name, http::HeaderValue::from_static(value));
            assert_eq!(
                asked_wait(&headers, now),
                want.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn backoff_doubles_within_its_bounds() {
        let policy = RetryPolicy::default();
        for (attempt, wait) in [
            (1, 2.0),
            (2, 4.0),
            (3, 8.0),
            (4, 16.0),
            (5, 30.0),
            (60, 30.0),
        ] {
            let got = policy.backoff(attempt).as_secs_f64();
            assert!(
                (wait * 0.75..=wait * 1.25).contains(&got),
                "{attempt}: {got}"
            );
        }
    }
}
