//! Hook points that wait until plugins are notified of them, in lines: what is about one session, or one connection of the bridge, is
//! notified in order, and no more of it waits than [`MAX_PENDING`].

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Mutex;

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::turn::HookPayload;
use outrigger_workspace::sync::lock;

/// How many points may wait, of one session or connection. A step of a turn has about five.
pub const MAX_PENDING: usize = 256;

/// What a point is about: what is about the same is notified in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// A session, outside of a turn.
    Session(SessionId),
    /// A turn; in one line with its session.
    Turn(SessionId, TurnId),
    /// A connection of the bridge, by number, and the session that a call says it is of; in one line with the connection.
    Connection(u64, Option<SessionId>),
    /// None of them.
    Nothing,
}

impl About {
    /// That session and turn, as far as there are any.
    pub fn of(session: Option<&SessionId>, turn: Option<&TurnId>) -> Self {
        match (session.cloned(), turn.cloned()) {
            (Some(session), Some(turn)) => Self::Turn(session, turn),
            (Some(session), None) => Self::Session(session),
            (None, _) => Self::Nothing,
        }
    }

    /// The line that it waits in.
    pub fn line(&self) -> Self {
        match self {
            Self::Turn(session, _) => Self::Session(session.clone()),
            Self::Connection(number, _) => Self::Connection(*number, None),
            other => other.clone(),
        }
    }

    /// The session and the turn in it.
    pub fn parts(self) -> (Option<SessionId>, Option<TurnId>) {
        match self {
            Self::Turn(session, turn) => (Some(session), Some(turn)),
            Self::Session(session) => (Some(session), None),
            Self::Connection(_, session) => (session, None),
            Self::Nothing => (None, None),
        }
    }
}

/// For the log.
impl fmt::Display for About {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(session) | Self::Turn(session, _) => write!(out, "session {session}"),
            Self::Connection(number, _) => write!(out, "connection {number} of the bridge"),
            Self::Nothing => out.write_str("no session"),
        }
    }
}

/// A point of which plugins are to be notified.
pub struct Notification {
    /// What comes.
    pub what: What,
    /// What it is about, and so in which line it waits.
    pub about: About,
    /// The step of the turn at which it was reached.
    pub step: Option<String>,
}

/// What comes when it is a notification's turn.
pub enum What {
    /// A point, with what its handlers read.
    Point(HookPoint, HookPayload),
    /// The end of a message, read from the store (A4).
    Completed(MessageId),
    /// The line of a turn whose points have all been notified before (A2).
    Sequence(TurnId),
}

impl What {
    /// It comes however many wait: messages are small and due until they are taken, and each turn ends once.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Point(..))
    }
}

/// What waits, by what it is about. A line is there while somebody notifies what is in it.
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
    /// Each with whether it is kept however many wait.
    waiting: VecDeque<(T, bool)>,
    missed: u64,
}

impl<T> Line<T> {
    /// How many wait that count towards [`MAX_PENDING`].
    fn counting(&self) -> usize {
        self.waiting.iter().filter(|(_, kept)| !kept).count()
    }
}

/// What became of something that was put into a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Put<T> {
    /// Nobody notifies what is in its line: who put it there must begin.
    First(T),
    /// It waits.
    Waits,
    /// As many wait as may; this is how many were dropped of its line.
    Dropped(u64),
    /// Nothing is notified any more.
    Closed,
}

impl<T> Lines<T> {
    fn put(&mut self, line: &About, item: T, kept: bool) -> Put<T> {
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
        // The newest goes: what came before it stays in one piece.
        if !kept && line.waiting.len() >= MAX_PENDING && line.counting() >= MAX_PENDING {
            line.missed += 1;
            return Put::Dropped(line.missed);
        }
        line.waiting.push_back((item, kept));
        Put::Waits
    }

    /// The next of a line; without any the line is over.
    fn next(&mut self, line: &About) -> Option<T> {
        let (item, _) = self.lines.get_mut(line)?.waiting.pop_front()?;
        Some(item)
    }

    /// Ends a line: how many of it nobody was notified of.
    fn end(&mut self, line: &About) -> u64 {
        let ended = self.lines.remove(line);
        ended.map_or(0, |line| line.missed + line.counting() as u64)
    }
}

/// The notifications that wait.
#[derive(Default)]
pub struct Notifications(Mutex<Lines<Notification>>);

impl Notifications {
    /// Nothing is notified any more: those who would hear it are being ended.
    pub fn close(&self) {
        lock(&self.0).closed = true;
    }

    /// Puts a notification at the end of its line.
    pub fn put(&self, line: &About, item: Notification) -> Put<Notification> {
        let kept = item.what.is_kept();
        lock(&self.0).put(line, item, kept)
    }

    /// The next of a line; without any the line ends, with how many of it were dropped.
    pub fn next(&self, line: &About) -> Result<Notification, u64> {
        let mut lines = lock(&self.0);
        match lines.next(line) {
            Some(next) => Ok(next),
            None => Err(lines.end(line)),
        }
    }

    /// Ends a line: how many of it nobody was notified of.
    pub fn end(&self, line: &About) -> u64 {
        lock(&self.0).end(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The end of a message comes however many wait (A4), and so does the line of a turn (A2).
    #[test]
    fn ends_of_messages_and_turns_are_kept() {
        let payload = HookPayload::new(json!({}), json!({}));
        for (what, kept) in [
            (What::Completed("msg_1".into()), true),
            (What::Sequence("trn_1".into()), true),
            (
                What::Point(HookPoint::SessionAfterCompleteMessage, payload),
                false,
            ),
        ] {
            assert_eq!(what.is_kept(), kept);
        }
        let line = About::Session("ses_1".into());
        let all = Notifications::default();
        let put = |what| {
            all.put(
                &line,
                Notification {
                    what,
                    about: line.clone(),
                    step: None,
                },
            )
        };
        let point = || {
            What::Point(
                HookPoint::LlmOnError,
                HookPayload::new(json!({}), json!({})),
            )
        };
        for _ in 0..=MAX_PENDING {
            assert!(!matches!(put(point()), Put::Dropped(_)));
        }
        assert!(matches!(put(point()), Put::Dropped(1)));
        assert!(matches!(put(What::Completed("msg_1".into())), Put::Waits));
    }

    #[test]
    fn a_line_is_in_order_and_has_an_end() {
        let mut lines = Lines::default();
        let session = About::Session("ses_1".into());
        let line = About::Turn("ses_1".into(), "turn".into()).line();
        assert_eq!(line, session);
        assert_eq!(lines.put(&line, 0, false), Put::First(0));
        for n in 1..=MAX_PENDING {
            assert_eq!(lines.put(&line, n, false), Put::Waits, "{n}");
        }
        assert_eq!(lines.put(&line, MAX_PENDING + 1, false), Put::Dropped(1));
        assert_eq!(lines.put(&line, MAX_PENDING + 2, false), Put::Dropped(2));
        // Another line is not held up.
        assert_eq!(
            lines.put(&About::Connection(1, None), 0, false),
            Put::First(0)
        );
        // What is kept comes in its place, however many wait.
        assert_eq!(lines.put(&line, 1_000, true), Put::Waits);
        assert_eq!(lines.put(&line, MAX_PENDING + 3, false), Put::Dropped(3));
        for n in 1..=MAX_PENDING {
            assert_eq!(lines.next(&session), Some(n));
        }
        assert_eq!(lines.next(&session), Some(1_000));
        assert_eq!(lines.put(&line, 7, false), Put::Waits);
        assert_eq!(lines.end(&session), 4, "three dropped and one that waits");
        assert_eq!(lines.put(&line, 8, false), Put::First(8));
        lines.closed = true;
        assert_eq!(lines.put(&line, 9, false), Put::Closed);
    }
}
