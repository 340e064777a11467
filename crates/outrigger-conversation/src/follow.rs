//! The stream of one client: the log after the event that it saw last, then new events.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outrigger_api::StreamItem;
use outrigger_kernel::merge::Form;
use outrigger_protocol::id::SessionId;
use outrigger_store::StoreError;
use tokio::sync::broadcast::error::RecvError;

use crate::feed::{Feed, Item, RECORDS, Stored, Subscription, line, stored_after};
use crate::reader::status;

/// A comment is sent after this time without data, so that a lost connection is noticed.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Decides whether a client may see a folder.
type Allowed = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A client's request.
#[derive(Clone, Default)]
pub struct FollowOptions {
    /// Only this conversation.
    pub only: Option<SessionId>,
    /// The form of tool entries.
    pub form: Form,
    /// Starts after this record of the log; `None`: with new events.
    pub after: Option<i64>,
    /// Only sessions of these folders.
    pub allowed: Option<Allowed>,
}

/// A client that follows.
pub struct Follow {
    feed: Feed,
    wanted: FollowOptions,
    subscription: Subscription,
    /// The client has the log up to here.
    sent: i64,
    /// The log is read up to here before live items are sent.
    target: i64,
    phase: Phase,
}

enum Phase {
    Begins,
    CatchesUp,
    Follows,
}

impl Follow {
    /// Starts to follow.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn new(feed: Feed, wanted: FollowOptions) -> Result<Self, StoreError> {
        let subscription = feed.subscribe().await?;
        let at = subscription.at;
        Ok(Self {
            sent: wanted.after.unwrap_or(at).min(at),
            target: at,
            feed,
            wanted,
            subscription,
            phase: Phase::Begins,
        })
    }

    /// Returns the next data for the client. It is called only after the client has read the previous data, so nothing
    /// accumulates.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn next(&mut self) -> Result<Bytes, StoreError> {
        loop {
            let bytes = match self.phase {
                Phase::Begins => self.begin(),
                Phase::CatchesUp if self.sent < self.target => self.catch_up()?,
                Phase::CatchesUp => self.beside(),
                Phase::Follows => self.follow().await?,
            };
            if !bytes.is_empty() {
                return Ok(bytes);
            }
        }
    }

    fn begin(&mut self) -> Bytes {
        self.phase = Phase::CatchesUp;
        let item = match self.wanted.after {
            // A number beyond the end belongs to another log.
            Some(after) if after > self.target => StreamItem::Reset { event: self.target },
            _ => StreamItem::Connected { event: self.sent },
        };
        line(&item)
    }

    /// Returns a piece of the log.
    fn catch_up(&mut self) -> Result<Bytes, StoreError> {
        let reader = self.feed.reader();
        let records = stored_after(reader, self.wanted.only.as_ref(), self.sent)?;
        let is_all = records.len() < RECORDS;
        let mut text = Vec::new();
        for record in records {
            if record.seq > self.target {
                break;
            }
            self.sent = record.seq;
            if let Some(stored) = Stored::of(record)
                && self.wants(&stored.session, false)
            {
                text.extend_from_slice(&stored.lines(reader, self.wanted.form));
            }
        }
        if is_all {
            self.sent = self.target;
        }
        Ok(Bytes::from(text))
    }

    /// Returns what is not in the log: the status of sessions, and texts in progress.
    fn beside(&mut self) -> Bytes {
        self.phase = Phase::Follows;
        let mut text = Vec::new();
        for (conversation, now) in self.feed.reader().live().statuses() {
            if self.wants(&conversation, false) {
                text.extend_from_slice(&line(&StreamItem::Status {
                    conversation,
                    status: status(&now),
                }));
            }
        }
        for (session, line) in &self.subscription.writing {
            if self.wants(session, false) {
                text.extend_from_slice(line);
            }
        }
        self.subscription.writing = Vec::new();
        Bytes::from(text)
    }

    async fn follow(&mut self) -> Result<Bytes, StoreError> {
        let next = tokio::time::timeout(HEARTBEAT, self.subscription.items.recv()).await;
        let Ok(next) = next else {
            return Ok(Bytes::from_static(b":\n\n"));
        };
        match next {
            Ok(item) => Ok(match item.as_ref() {
                Item::Stored(stored) if stored.seq <= self.sent => Bytes::new(),
                Item::Stored(stored) => {
                    self.sent = stored.seq;
                    if self.wants(&stored.session, stored.is_question()) {
                        stored.lines(self.feed.reader(), self.wanted.form)
                    } else {
                        Bytes::new()
                    }
                }
                Item::Beside { session, line } if self.wants(session, false) => line.clone(),
                Item::Beside { .. } => Bytes::new(),
            }),
            // Missed items are in the log, except for unstored ones.
            Err(RecvError::Lagged(_) | RecvError::Closed) => {
                self.subscription = self.feed.subscribe().await?;
                self.target = self.subscription.at;
                self.phase = Phase::CatchesUp;
                Ok(Bytes::new())
            }
        }
    }

    /// Returns whether an item is wanted. Questions of subagents are for the user, too.
    fn wants(&self, session: &SessionId, is_question: bool) -> bool {
        if self.wanted.only.is_none() && self.wanted.allowed.is_none() {
            return true;
        }
        let Ok(facts) = self.feed.reader().facts(session) else {
            return false;
        };
        let is_it = self
            .wanted
            .only
            .as_ref()
            .is_none_or(|only| only == session || is_question && *only == facts.task);
        let allowed = self.wanted.allowed.as_ref();
        is_it && allowed.is_none_or(|allowed| allowed(Path::new(&facts.directory)))
    }
}
