//! Queued notifications to plugins: those about one session, or one connection of the bridge, are sent in order, and at most
//! [`MAX_PENDING`] of them wait.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Mutex;

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::turn::HookPayload;
use outrigger_stdx::sync::lock;

/// Maximum number of waiting points of one session or connection. A step of a turn has about five.
pub const MAX_PENDING: usize = 256;

/// Subject of a point: notifications about the same subject are sent in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// A session, outside a turn.
    Session(SessionId),
    /// A turn; in one queue with its session.
    Turn(SessionId, TurnId),
    /// A connection of the bridge, by number, and the session that a call claims; in one queue with the connection.
    Connection(u64, Option<SessionId>),
    /// None of these.
    Nothing,
}

impl About {
    /// Returns the subject for a session and turn, as far as there are any.
    pub fn of(session: Option<&SessionId>, turn: Option<&TurnId>) -> Self {
        match (session.cloned(), turn.cloned()) {
            (Some(session), Some(turn)) => Self::Turn(session, turn),
            (Some(session), None) => Self::Session(session),
            (None, _) => Self::Nothing,
        }
    }

    /// Returns its queue.
    pub fn line(&self) -> Self {
        match self {
            Self::Turn(session, _) => Self::Session(session.clone()),
            Self::Connection(number, _) => Self::Connection(*number, None),
            other => other.clone(),
        }
    }

    /// Returns the session and the turn in it.
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

/// A notification to plugins.
pub struct Notification {
    /// Content.
    pub what: What,
    /// Subject, which determines the queue.
    pub about: About,
    /// Step of the turn at which it was reached.
    pub step: Option<String>,
}

/// Content of a notification.
pub enum What {
    /// A point, with the payload for its handlers.
    Point(HookPoint, HookPayload),
    /// The end of a message, read from the store (A4).
    Completed(MessageId),
    /// The sequence line of a turn, after all its notifications (A2).
    Sequence(TurnId),
}

impl What {
    /// Returns whether it is kept however many wait: messages are small and due until claimed, and each turn ends once.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Point(..))
    }
}

/// Waiting items by subject. A queue exists while it has a worker.
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
    /// Returns the number of waiting items that count towards [`MAX_PENDING`].
    fn counting(&self) -> usize {
        self.waiting.iter().filter(|(_, kept)| !kept).count()
    }
}

/// Result of adding an item to a queue.
#[derive(Debug, PartialEq, Eq)]
pub enum Put<T> {
    /// The queue has no worker: the caller must start one.
    First(T),
    /// It waits.
    Waits,
    /// The queue is full; this many of its items were dropped.
    Dropped(u64),
    /// Notifications are closed.
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
        // The newest is dropped: the earlier ones stay contiguous.
        if !kept && line.waiting.len() >= MAX_PENDING && line.counting() >= MAX_PENDING {
            line.missed += 1;
            return Put::Dropped(line.missed);
        }
        line.waiting.push_back((item, kept));
        Put::Waits
    }

    /// Returns the next item of a queue; an empty queue ends.
    fn next(&mut self, line: &About) -> Option<T> {
        let (item, _) = self.lines.get_mut(line)?.waiting.pop_front()?;
        Some(item)
    }

    /// Ends a queue: returns how many of its items were not sent.
    fn end(&mut self, line: &About) -> u64 {
        let ended = self.lines.remove(line);
        ended.map_or(0, |line| line.missed + line.counting() as u64)
    }
}

/// Waiting notifications.
#[derive(Default)]
pub struct Notifications(Mutex<Lines<Notification>>);

impl Notifications {
    /// Closes the queues: the plugins are being ended.
    pub fn close(&self) {
        lock(&self.0).closed = true;
    }

    /// Appends a notification to its queue.
    pub fn put(&self, line: &About, item: Notification) -> Put<Notification> {
        let kept = item.what.is_kept();
        lock(&self.0).put(line, item, kept)
    }

    /// Returns the next item of a queue; an empty queue ends, with the number of its dropped items.
    pub fn next(&self, line: &About) -> Result<Notification, u64> {
        let mut lines = lock(&self.0);
        match lines.next(line) {
            Some(next) => Ok(next),
            None => Err(lines.end(line)),
        }
    }

    /// Ends a queue: returns how many of its items were not sent.
    pub fn end(&self, line: &About) -> u64 {
        lock(&self.0).end(line)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The end of a message is kept however many wait (A4), and so is the sequence line of a turn (A2).
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
        // Another queue is not affected.
        assert_eq!(
            lines.put(&About::Connection(1, None), 0, false),
            Put::First(0)
        );
        // A kept item takes its position, however many wait.
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
