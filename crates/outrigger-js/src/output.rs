//! What plugins print: line by line into the log, at a bounded rate (A9).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tracing::Level;

/// Longest line that is logged, in bytes; the rest of it is left out.
const MAX_LINE: usize = 4096;
/// Lines kept for the message about a process that died.
const KEPT: usize = 8;

/// How the output of a process is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLog {
    /// Level of the lines; the default is warn (A9).
    pub level: Level,
    /// Most lines in a second, of both streams together; what is over is counted, and the count is logged.
    pub lines_per_second: u32,
}

impl Default for OutputLog {
    fn default() -> Self {
        Self {
            level: Level::WARN,
            lines_per_second: 20,
        }
    }
}

/// The lines of one process.
#[derive(Debug)]
pub(crate) struct Lines {
    name: String,
    log: OutputLog,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: VecDeque<String>,
    second: Instant,
    logged: u32,
    dropped: u64,
}

impl Lines {
    pub(crate) fn new(name: String, log: OutputLog) -> Arc<Self> {
        let state = State {
            last: VecDeque::new(),
            second: Instant::now(),
            logged: 0,
            dropped: 0,
        };
        Arc::new(Self {
            name,
            log,
            state: Mutex::new(state),
        })
    }

    /// The last lines of standard error, oldest first.
    pub(crate) fn last(&self) -> Vec<String> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last
            .iter()
            .cloned()
            .collect()
    }

    /// Reads `stream` to its end.
    pub(crate) async fn pump(self: Arc<Self>, mut stream: impl AsyncRead + Unpin, keep: bool) {
        let mut buffer = BytesMut::with_capacity(8192);
        let mut skipping = false;
        while stream
            .read_buf(&mut buffer)
            .await
            .is_ok_and(|read| read > 0)
        {
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line = buffer.split_to(end);
                buffer.advance(1);
                if !std::mem::take(&mut skipping) {
                    self.line(&line, keep, Instant::now());
                }
            }
            if buffer.len() > MAX_LINE {
                if !std::mem::replace(&mut skipping, true) {
                    self.line(&buffer, keep, Instant::now());
                }
                buffer.clear();
            }
        }
        if !buffer.is_empty() && !skipping {
            self.line(&buffer, keep, Instant::now());
        }
    }

    fn line(&self, bytes: &[u8], keep: bool, now: Instant) {
        let bytes = bytes.get(..MAX_LINE).unwrap_or(bytes);
        let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        let (logged, dropped) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if keep {
                if state.last.len() == KEPT {
                    state.last.pop_front();
                }
                state.last.push_back(line.clone());
            }
            state.admit(self.log.lines_per_second, now)
        };
        if dropped > 0 {
            self.write(&format!(
                "({dropped} lines left out, over {} a second)",
                self.log.lines_per_second
            ));
        }
        if logged {
            self.write(&line);
        }
    }

    fn write(&self, line: &str) {
        let name = &self.name;
        match self.log.level {
            Level::ERROR => tracing::error!(target: "plugin", "[plugin:{name}] {line}"),
            Level::WARN => tracing::warn!(target: "plugin", "[plugin:{name}] {line}"),
            Level::INFO => tracing::info!(target: "plugin", "[plugin:{name}] {line}"),
            Level::DEBUG => tracing::debug!(target: "plugin", "[plugin:{name}] {line}"),
            Level::TRACE => tracing::trace!(target: "plugin", "[plugin:{name}] {line}"),
        }
    }
}

impl State {
    /// Whether a line may be logged now, and how many were left out in the second that has just ended.
    fn admit(&mut self, rate: u32, now: Instant) -> (bool, u64) {
        let mut dropped = 0;
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            dropped = std::mem::take(&mut self.dropped);
            self.second = now;
            self.logged = 0;
        }
        if self.logged >= rate {
            self.dropped += 1;
            return (false, dropped);
        }
        self.logged += 1;
        (true, dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_the_rate_lines_are_counted_and_told_of_in_the_next_second() {
        let start = Instant::now();
        let mut state = State {
            last: VecDeque::new(),
            second: start,
            logged: 0,
            dropped: 0,
        };
        let admitted: Vec<_> = (0..5).map(|_| state.admit(2, start).0).collect();
        assert_eq!(admitted, [true, true, false, false, false]);
        assert_eq!(state.admit(2, start + Duration::from_secs(1)), (true, 3));
        assert_eq!(state.admit(2, start + Duration::from_secs(1)), (true, 0));
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_cut() {
        let lines = Lines::new("x".into(), OutputLog::default());
        let text = format!(
            "{}\nb\n\n{}end",
            "a".repeat(3 * MAX_LINE),
            "line\n".repeat(20)
        );
        Arc::clone(&lines).pump(text.as_bytes(), true).await;
        let last = lines.last();
        assert_eq!((last.len(), last.last().unwrap().as_str()), (KEPT, "end"));

        let lines = Lines::new("x".into(), OutputLog::default());
        Arc::clone(&lines)
            .pump("a".repeat(3 * MAX_LINE).as_bytes(), true)
            .await;
        assert_eq!(lines.last()[0].len(), MAX_LINE);
    }
}
