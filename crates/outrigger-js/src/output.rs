//! Output of plugins: logged line by line, at a limited rate (A9).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use outrigger_stdx::sync::lock;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tracing::Level;

/// Maximum length of a logged line in bytes; the rest of it is dropped.
const MAX_LINE: usize = 4096;
const SECOND: Duration = Duration::from_secs(1);
/// Number of lines kept for the error message about an exited process.
const KEPT: usize = 8;

/// How the output of a process is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLog {
    /// Level of the lines of standard error; the default is warn (A9). Lines of standard output, where `console.log` goes, are
    /// logged at info at most.
    pub level: Level,
    /// Maximum number of lines per second, of both streams together; further ones are counted, and the count is logged.
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

/// Delimiters of the name of the plugin that printed a line. If several plugins share a process, its host script marks lines this
/// way.
const BEGIN: u8 = 0x1e;
const END: u8 = 0x1f;

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
    /// Names of its plugins, with which lines may be marked.
    plugins: BTreeSet<String>,
    /// Rates of each plugin, and of the process for unmarked lines.
    rates: BTreeMap<String, Rate>,
}

/// Number of lines in the current second.
#[derive(Debug)]
struct Rate {
    second: Instant,
    logged: u32,
    dropped: u64,
}

impl Lines {
    pub(crate) fn new(name: String, log: OutputLog) -> Arc<Self> {
        let state = State {
            last: VecDeque::new(),
            plugins: BTreeSet::new(),
            rates: BTreeMap::new(),
        };
        Arc::new(Self {
            name,
            log,
            state: Mutex::new(state),
        })
    }

    /// Returns the name of the process.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Accepts lines marked with these plugins.
    pub(crate) fn expect(&self, plugins: impl IntoIterator<Item = String>) {
        self.state().plugins.extend(plugins);
    }

    /// Returns the last lines of standard error, oldest first.
    pub(crate) fn last(&self) -> Vec<String> {
        self.state().last.iter().cloned().collect()
    }

    /// Reads `stream` until it ends. `is_error`: standard error, whose last lines are kept.
    pub(crate) async fn pump(self: Arc<Self>, mut stream: impl AsyncRead + Unpin, is_error: bool) {
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
                    self.line(&line, is_error, Instant::now());
                }
            }
            if buffer.len() > MAX_LINE {
                if !std::mem::replace(&mut skipping, true) {
                    self.line(&buffer, is_error, Instant::now());
                }
                buffer.clear();
            }
        }
        if !buffer.is_empty() && !skipping {
            self.line(&buffer, is_error, Instant::now());
        }
        self.tell_dropped();
    }

    /// Waits for more. If nothing arrives for a second after a flood, the count of dropped lines is logged.
    async fn wait<T>(&self, more: impl Future<Output = T>) -> T {
        tokio::pin!(more);
        loop {
            tokio::select! {
                biased;
                more = &mut more => return more,
                () = tokio::time::sleep(SECOND), if self.state().has_dropped() => self.tell_dropped(),
            }
        }
    }

    fn tell_dropped(&self) {
        let rates = &mut self.state().rates;
        let dropped: Vec<_> = rates
            .iter_mut()
            .map(|(owner, rate)| {
                let dropped = std::mem::take(&mut rate.dropped);
                (owner.clone(), dropped)
            })
            .collect();
        for (owner, dropped) in dropped {
            self.write_dropped(&owner, dropped);
        }
    }

    fn write_dropped(&self, owner: &str, dropped: u64) {
        if dropped > 0 {
            let rate = self.log.lines_per_second;
            self.write(
                owner,
                &format!("({dropped} lines left out, over {rate} a second)"),
                self.log.level,
            );
        }
    }

    /// Reports a message about a plugin from the channel: `log` gets the plugin and the text, truncated to the length of a line,
    /// at the same rate as lines.
    pub(crate) fn report(&self, plugin: Option<&str>, message: &str, log: impl FnOnce(&str, &str)) {
        let (owner, logged, dropped) = {
            let mut state = self.state();
            let known = plugin.filter(|plugin| state.plugins.contains(*plugin));
            let owner = known.unwrap_or(&self.name).to_owned();
            let (logged, dropped) = state.admit(&owner, self.log.lines_per_second, Instant::now());
            (owner, logged, dropped)
        };
        self.write_dropped(&owner, dropped);
        if logged {
            log(&owner, cut(message));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn line(&self, bytes: &[u8], is_error: bool, now: Instant) {
        let mut state = self.state();
        let (marked, bytes) = match state.owner(bytes) {
            Some((owner, rest)) => (Some(owner.to_owned()), rest),
            None => (None, bytes),
        };
        let owner = marked.as_deref().unwrap_or(&self.name);
        let bytes = bytes.get(..MAX_LINE).unwrap_or(bytes);
        let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
        if line.is_empty() {
            return;
        }
        let (logged, dropped) = {
            if is_error {
                if state.last.len() == KEPT {
                    state.last.pop_front();
                }
                state.last.push_back(line.clone());
            }
            state.admit(owner, self.log.lines_per_second, now)
        };
        drop(state);
        self.write_dropped(owner, dropped);
        if logged {
            self.write(owner, &line, self.level(is_error));
        }
    }

    /// Returns the level of a stream.
    fn level(&self, is_error: bool) -> Level {
        if is_error {
            self.log.level
        } else {
            self.log.level.max(Level::INFO)
        }
    }

    fn write(&self, name: &str, line: &str, level: Level) {
        match level {
            Level::ERROR => tracing::error!(target: "plugin", "[plugin:{name}] {line}"),
            Level::WARN => tracing::warn!(target: "plugin", "[plugin:{name}] {line}"),
            Level::INFO => tracing::info!(target: "plugin", "[plugin:{name}] {line}"),
            Level::DEBUG => tracing::debug!(target: "plugin", "[plugin:{name}] {line}"),
            Level::TRACE => tracing::trace!(target: "plugin", "[plugin:{name}] {line}"),
        }
    }
}

/// Truncates a text to the maximum length of a line.
pub(crate) fn cut(text: &str) -> &str {
    let end = outrigger_stdx::text::floor_char_boundary(text, MAX_LINE);
    text.get(..end).unwrap_or(text)
}

impl State {
    /// Returns the plugin that a line is marked with, and the line without its mark.
    fn owner<'l>(&self, bytes: &'l [u8]) -> Option<(&str, &'l [u8])> {
        let rest = bytes.strip_prefix(&[BEGIN])?;
        let end = memchr::memchr(END, rest)?;
        let name = std::str::from_utf8(rest.get(..end)?).ok()?;
        let owner = self.plugins.get(name)?;
        Some((owner, rest.get(end + 1..)?))
    }

    fn has_dropped(&self) -> bool {
        self.rates.values().any(|rate| rate.dropped > 0)
    }

    fn admit(&mut self, owner: &str, rate: u32, now: Instant) -> (bool, u64) {
        if let Some(own) = self.rates.get_mut(owner) {
            return own.admit(rate, now);
        }
        let mut new = Rate {
            second: now,
            logged: 0,
            dropped: 0,
        };
        let admitted = new.admit(rate, now);
        self.rates.insert(owner.to_owned(), new);
        admitted
    }
}

impl Rate {
    /// Returns whether a line may be logged now, and how many were dropped in the second that has just ended.
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
        let mut state = Rate {
            second: start,
            logged: 0,
            dropped: 0,
        };
        let admitted: Vec<_> = (0..5).map(|_| state.admit(2, start).0).collect();
        assert_eq!(admitted, [true, true, false, false, false]);
        assert_eq!(state.admit(2, start + Duration::from_secs(1)), (true, 3));
        assert_eq!(state.admit(2, start + Duration::from_secs(1)), (true, 0));
    }

    fn dropped(lines: &Lines, owner: &str) -> u64 {
        lines
            .state()
            .rates
            .get(owner)
            .map_or(0, |rate| rate.dropped)
    }

    /// A9: a noisy plugin uses up nothing of the rate of others in its process; an unknown name is attributed to no plugin.
    #[tokio::test]
    async fn each_plugin_of_a_process_has_its_own_rate() {
        let lines = Lines::new("shared".into(), OutputLog::default());
        lines.expect(["noisy".to_owned(), "quiet".to_owned()]);
        let noise = "\u{1e}noisy\u{1f}x\n".repeat(100);
        let rest = "\u{1e}quiet\u{1f}hello\n\u{1e}other\u{1f}y\nz\n";
        let text = format!("{noise}{rest}");
        Arc::clone(&lines).pump(text.as_bytes(), true).await;
        let state = lines.state();
        let logged: Vec<_> = state
            .rates
            .iter()
            .map(|(name, it)| (name.as_str(), it.logged))
            .collect();
        assert_eq!(logged, [("noisy", 20), ("quiet", 1), ("shared", 2)]);
        let last: Vec<_> = state
            .last
            .iter()
            .rev()
            .take(3)
            .map(String::as_str)
            .collect();
        assert_eq!(last, ["z", "\u{1e}other\u{1f}y", "hello"]);
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
        assert_eq!(dropped(&lines, "x"), 30);
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(dropped(&lines, "x"), 0);
        drop(sink);
        pump.await.unwrap();
    }

    #[test]
    fn what_goes_to_standard_output_is_no_warning() {
        let level = |level, is_error| {
            let log = OutputLog {
                level,
                ..OutputLog::default()
            };
            Lines::new("x".into(), log).level(is_error)
        };
        assert_eq!(level(Level::WARN, true), Level::WARN);
        assert_eq!(level(Level::WARN, false), Level::INFO);
        assert_eq!(level(Level::DEBUG, false), Level::DEBUG);
    }

    #[test]
    fn what_comes_through_the_channel_has_the_same_limits() {
        let lines = Lines::new("x".into(), OutputLog::default());
        let logged = std::cell::RefCell::new(Vec::new());
        for _ in 0..1000 {
            lines.report(None, &"\u{e4}".repeat(3 * MAX_LINE), |_, text| {
                logged.borrow_mut().push(text.len());
            });
        }
        assert_eq!(*logged.borrow(), vec![MAX_LINE; 20]);
        assert_eq!(dropped(&lines, "x"), 980);
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
