//! Points where plugins are told and not asked. What is about one session, or one connection of the bridge, is told in the
//! order in which it was reached, one after the other; nothing waits for it, and no more of it waits than [`MAX_PENDING`].

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::turn::HookPayload;
use outrigger_workspace::sync::lock;
use serde_json::Value;

use crate::state::Inner;

/// How many points may wait to be told, of one session or connection. A step of a turn has about five.
const MAX_PENDING: usize = 256;

/// What a point is about: what is about the same is told in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum About {
    /// A session, outside of a turn.
    Session(SessionId),
    /// A turn; in one line with its session.
    Turn(SessionId, TurnId),
    /// A connection of the bridge, by number.
    Connection(u64),
    /// None of them.
    Nothing,
}

impl About {
    /// That session and turn, as far as there are any.
    pub(crate) fn of(session: Option<&SessionId>, turn: Option<&TurnId>) -> Self {
        match (session.cloned(), turn.cloned()) {
            (Some(session), Some(turn)) => Self::Turn(session, turn),
            (Some(session), None) => Self::Session(session),
            (None, _) => Self::Nothing,
        }
    }

    /// The line that it waits in.
    fn line(&self) -> Self {
        match self {
            Self::Turn(session, _) => Self::Session(session.clone()),
            other => other.clone(),
        }
    }

    fn parts(self) -> (Option<SessionId>, Option<TurnId>) {
        match self {
            Self::Turn(session, turn) => (Some(session), Some(turn)),
            Self::Session(session) => (Some(session), None),
            Self::Connection(_) | Self::Nothing => (None, None),
        }
    }
}

/// For the log.
impl fmt::Display for About {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) | Self::Turn(session, _) => write!(out, "session {session}"),
            Self::Connection(number) => write!(out, "connection {number} of the bridge"),
            Self::Nothing => out.write_str("no session"),
        }
    }
}

/// A point that waits to be told.
struct Telling {
    point: &'static str,
    payload: HookPayload,
    about: About,
}

/// What waits, by what it is about. A line is there while somebody tells what is in it.
struct Lines<T> {
    lines: HashMap<About, Line<T>>,
    closed: bool,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Self {
            lines: HashMap::new(),
            closed: false,
        }
    }
}

struct Line<T> {
    waiting: VecDeque<T>,
    missed: u64,
}

/// What became of something that is to be told.
#[derive(Debug, PartialEq, Eq)]
enum Put<T> {
    /// Nobody tells what is in its line: whoever put it there has to begin.
    First(T),
    /// It waits.
    Waits,
    /// As many wait as may; this is how many were dropped of its line.
    Dropped(u64),
    /// Nothing is told any more.
    Closed,
}

impl<T> Lines<T> {
    fn put(&mut self, line: &About, item: T) -> Put<T> {
        if self.closed {
            return Put::Closed;
        }
        let Some(line) = self.lines.get_mut(line) else {
            let new = Line {
                waiting: VecDeque::new(),
                missed: 0,
            };
            self.lines.insert(line.clone(), new);
            return Put::First(item);
        };
        // The newest goes: what was told before it stays in one piece.
        if line.waiting.len() >= MAX_PENDING {
            line.missed += 1;
            return Put::Dropped(line.missed);
        }
        line.waiting.push_back(item);
        Put::Waits
    }

    /// The next of a line; without any the line is over.
    fn next(&mut self, line: &About) -> Option<T> {
        self.lines.get_mut(line)?.waiting.pop_front()
    }

    /// Ends a line: how many of it nobody was told of.
    fn end(&mut self, line: &About) -> u64 {
        let ended = self.lines.remove(line);
        ended.map_or(0, |line| line.missed + line.waiting.len() as u64)
    }
}

/// What waits to be told.
#[derive(Default)]
pub(crate) struct Told(Mutex<Lines<Telling>>);

impl Told {
    /// Nothing is told any more: those who would hear it are being ended.
    pub(crate) fn close(&self) {
        lock(&self.0).closed = true;
    }
}

/// Tells what is in one line, until nothing is.
struct Teller {
    inner: Arc<Inner>,
    line: About,
    over: bool,
}

impl Teller {
    async fn tell(mut self, first: Telling) {
        let mut next = Some(first);
        while let Some(telling) = next {
            let (session, turn) = telling.about.parts();
            let items = vec![telling.payload];
            let (session, turn) = (session.as_ref(), turn.as_ref());
            let told = self
                .inner
                .run_hooks(telling.point, items, session, turn, None);
            told.await;
            next = self.next();
        }
    }

    fn next(&mut self) -> Option<Telling> {
        let mut lines = lock(&self.inner.told.0);
        let next = lines.next(&self.line);
        if next.is_none() {
            self.over = true;
            said(&self.line, lines.end(&self.line));
        }
        next
    }
}

/// One that is stopped leaves no line behind that nobody tells.
impl Drop for Teller {
    fn drop(&mut self) {
        if !self.over {
            said(&self.line, lock(&self.inner.told.0).end(&self.line));
        }
    }
}

fn said(line: &About, missed: u64) {
    if missed > 0 {
        tracing::warn!(
            "[plugins] {missed} points about {line} were not told: the handlers of plugins took too long"
        );
    }
}

impl Inner {
    /// Tells plugins of a point, beside whatever happens next, and behind what was to be told about the same before.
    pub(crate) fn notify_hook(
        self: &Arc<Self>,
        point: &'static str,
        input: Value,
        output: Value,
        about: About,
    ) {
        if !self.plugins.pipeline().has(point) {
            return;
        }
        let line = about.line();
        let telling = Telling {
            point,
            payload: HookPayload::new(input, output),
            about,
        };
        let put = lock(&self.told.0).put(&line, telling);
        match put {
            Put::First(telling) => {
                let teller = Teller {
                    inner: Arc::clone(self),
                    line,
                    over: false,
                };
                self.background.spawn(teller.tell(telling));
            }
            Put::Dropped(1) => tracing::warn!(
                "[plugins] {MAX_PENDING} points about {line} wait for the handlers of plugins: {point} is not told, nor is what comes until there is room; how many follows"
            ),
            Put::Waits | Put::Dropped(_) | Put::Closed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_in_order_and_has_an_end() {
        let mut lines = Lines::default();
        let session = About::Session("ses_1".into());
        let line = About::Turn("ses_1".into(), "turn".into()).line();
        assert_eq!(line, session);
        assert_eq!(lines.put(&line, 0), Put::First(0));
        for n in 1..=MAX_PENDING {
            assert_eq!(lines.put(&line, n), Put::Waits, "{n}");
        }
        assert_eq!(lines.put(&line, MAX_PENDING + 1), Put::Dropped(1));
        assert_eq!(lines.put(&line, MAX_PENDING + 2), Put::Dropped(2));
        // Another line is not held up.
        assert_eq!(lines.put(&About::Connection(1), 0), Put::First(0));
        for n in 1..=MAX_PENDING {
            assert_eq!(lines.next(&session), Some(n));
        }
        assert_eq!(lines.put(&line, 7), Put::Waits);
        assert_eq!(lines.end(&session), 3, "two dropped and one that waits");
        assert_eq!(lines.put(&line, 8), Put::First(8));
        lines.closed = true;
        assert_eq!(lines.put(&line, 9), Put::Closed);
    }
}
