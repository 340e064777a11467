//! What plugins print: line by line into the log, at a bounded rate (A9).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tracing::Level;

/// Longest line that is logged, in bytes; the rest of it is left out.
const MAX_LINE: usize = 4096;
const SECOND: Duration = Duration::from_secs(1);
/// Lines kept for the message about a process that died.
const KEPT: usize = 8;

/// How the output of a process is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLog {
    /// Level of the lines; the default is warn (A9).
    pub level: Level,
    /// Maximum number of lines in a second, of both streams together; what is over is counted, and the count is logged.
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

    /// Whose they are.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The last lines of standard error, oldest first.
    pub(crate) fn last(&self) -> Vec<String> {
        self.state().last.iter().cloned().collect()
    }

    /// Reads `stream` until it ends.
    pub(crate) async fn pump(self: Arc<Self>, mut stream: impl AsyncRead + Unpin, keep: bool) {
        let mut buffer = BytesMut::with_capacity(8192);
        let mut skipping = false;
        loop {
            match self.wait(stream.read_buf(&mut buffer)).await {
                Ok(read) if read > 0 => {}
                _ => break,
            }
            while let Some(end) = memchr::memchr(b'\n', &buffer) {
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
        self.tell_dropped();
    }

    /// Waits for more. Where nothing comes for a second behind a flood, the count of what was left out is logged.
    async fn wait<T>(&self, more: impl Future<Output = T>) -> T {
        tokio::pin!(more);
        loop {
            tokio::select! {
                biased;
                more = &mut more => return more,
                () = tokio::time::sleep(SECOND), if self.state().dropped > 0 => self.tell_dropped(),
            }
        }
    }

    fn tell_dropped(&self) {
        let dropped = std::mem::take(&mut self.state().dropped);
        self.write_dropped(dropped);
    }

    fn write_dropped(&self, dropped: u64) {
        if dropped > 0 {
            let rate = self.log.lines_per_second;
            self.write(&format!("({dropped} lines left out, over {rate} a second)"));
        }
    }

    /// What the process says through the channel: `log` gets it, cut to the length of a line, at the same rate as lines.
    pub(crate) fn report(&self, message: &str, log: impl FnOnce(&str)) {
        let (logged, dropped) = self
            .state()
            .admit(self.log.lines_per_second, Instant::now());
        self.write_dropped(dropped);
        if logged {
            log(cut(message));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, bytes: &[u8], keep: bool, now: Instant) {
        let bytes = bytes.get(..MAX_LINE).unwrap_or(bytes);
        let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        let (logged, dropped) = {
            let mut state = self.state();
            if keep {
                if state.last.len() == KEPT {
                    state.last.pop_front();
                }
                state.last.push_back(line.clone());
            }
            state.admit(self.log.lines_per_second, now)
        };
        self.write_dropped(dropped);
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

/// The beginning of a text, as long as a line may be.
pub(crate) fn cut(text: &str) -> &str {
    let end = outrigger_protocol::text::floor(text, MAX_LINE);
    text.get(..end).unwrap_or(text)
}

impl State {
    /// Whether a line may be logged now, and how many were left out in the second that has just ended.
    fn admit(&mut self, rate: u32, now: Instant) -> (bool, u64) {
        let mut dropped = 0;
        if now.saturating_duration_since(self.second) >= SECOND {
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
    fn over_the_rate_lines_are_counted_and_reported_in_the_next_second() {
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
    async fn what_was_left_out_is_reported_when_nothing_more_comes() {
        let lines = Lines::new("x".into(), OutputLog::default());
        let (mut sink, source) = tokio::io::duplex(1 << 16);
        let pump = tokio::spawn(Arc::clone(&lines).pump(source, true));
        tokio::io::AsyncWriteExt::write_all(&mut sink, "line\n".repeat(50).as_bytes())
            .await
            .unwrap();
        while lines.last().len() < KEPT {
            tokio::task::yield_now().await;
        }
        assert_eq!(lines.state().dropped, 30);
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(lines.state().dropped, 0);
        drop(sink);
        pump.await.unwrap();
    }

    #[test]
    fn what_comes_through_the_channel_has_the_same_limits() {
        let lines = Lines::new("x".into(), OutputLog::default());
        let logged = std::cell::RefCell::new(Vec::new());
        for _ in 0..1000 {
            lines.report(&"\u{e4}".repeat(3 * MAX_LINE), |text| {
                logged.borrow_mut().push(text.len());
            });
        }
        assert_eq!(*logged.borrow(), vec![MAX_LINE; 20]);
        assert_eq!(lines.state().dropped, 980);
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
