//! New entries of the log, read once for all subscribers, and unstored live updates.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use outrigger_api::{Status, StreamItem};
use outrigger_kernel::merge::Form;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{Part, PartKind, ToolState};
use outrigger_stdx::sync::lock;
use outrigger_store::{RecordQuery, Scope, StoreError, StoredRecord};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use crate::reader::{Reader, status};

/// How many items a client may fall behind before it re-reads the log.
const CAPACITY: usize = 4096;
/// Maximum number of records read at once.
pub(crate) const RECORDS: usize = 500;
/// How often records of other processes are looked for, while there is a subscriber.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Number of ended texts that are remembered, so that a late piece of one is not sent.
const MAX_ENDED: usize = 4096;

/// The relevant part of an agent's events.
enum Heard {
    Stored,
    Delta {
        session: SessionId,
        key: String,
        text: String,
    },
    Progress(Box<Part>),
    Status(SessionId, Status),
    Subscribe(oneshot::Sender<Subscription>),
}

/// An item for subscribers.
pub(crate) enum Item {
    Stored(Stored),
    /// Not stored.
    Beside {
        session: SessionId,
        line: Bytes,
    },
}

/// A stored event.
pub(crate) struct Stored {
    pub(crate) seq: i64,
    pub(crate) session: SessionId,
    event: Box<BusEvent>,
    lines: [OnceLock<Bytes>; 2],
}

impl Stored {
    /// Converts a record; `None` if it is not an event of a session.
    pub(crate) fn of(record: StoredRecord) -> Option<Self> {
        let LogRecord::Event(event) = record.record else {
            return None;
        };
        Some(Self {
            seq: record.seq,
            session: event.event.session_id()?.clone(),
            event,
            lines: Default::default(),
        })
    }

    /// Returns whether it is about a question to the user.
    pub(crate) fn is_question(&self) -> bool {
        matches!(
            self.event.event,
            Event::PermissionAsked(_)
                | Event::PermissionReplied { .. }
                | Event::QuestionAsked(_)
                | Event::QuestionReplied { .. }
                | Event::QuestionRejected { .. }
        )
    }

    /// Returns its lines for clients; empty if it is irrelevant for them. Only the last line has the number: after an
    /// interruption in between, all lines are repeated.
    pub(crate) fn lines(&self, reader: &Reader, form: Form) -> Bytes {
        let [merged, apart] = &self.lines;
        let lines = match form {
            Form::Merged => merged,
            Form::Apart => apart,
        };
        let write = || {
            let items = reader.items(&self.event.event, form);
            let mut text = Vec::new();
            for (n, item) in items.iter().enumerate() {
                if n + 1 == items.len() {
                    text.extend_from_slice(format!("id: {}\n", self.seq).as_bytes());
                }
                text.extend_from_slice(&line(item));
            }
            Bytes::from(text)
        };
        lines.get_or_init(write).clone()
    }
}

/// Serializes an item of a stream; JSON contains no line breaks.
pub(crate) fn line(item: &StreamItem) -> Bytes {
    let mut line = b"data: ".to_vec();
    // The items can always be serialized, and writing to memory does not fail.
    let _ = serde_json::to_writer(&mut line, item);
    line.extend_from_slice(b"\n\n");
    Bytes::from(line)
}

/// The view of one subscriber.
pub(crate) struct Subscription {
    pub(crate) items: broadcast::Receiver<Arc<Item>>,
    /// The log was read up to here.
    pub(crate) at: i64,
    /// Texts in progress so far: session and line.
    pub(crate) writing: Vec<(SessionId, Bytes)>,
    followers: Arc<AtomicUsize>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.followers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Notifies subscribers of new entries. Cheap to clone.
#[derive(Clone)]
pub struct Feed {
    reader: Arc<Reader>,
    followers: Arc<AtomicUsize>,
    /// Started by the first subscriber.
    queue: Arc<Mutex<Option<mpsc::UnboundedSender<Heard>>>>,
}

impl Feed {
    /// Creates the feed of a store. Nothing runs without a subscriber.
    #[must_use]
    pub fn new(reader: Arc<Reader>) -> Self {
        Self {
            reader,
            followers: Arc::default(),
            queue: Arc::default(),
        }
    }

    /// Returns its reader.
    #[must_use]
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// Handles an agent's event; stored ones are in the store by now. Never blocks.
    pub fn heard(&self, event: &BusEvent) {
        if self.followers.load(Ordering::SeqCst) == 0 {
            return;
        }
        let heard = match &event.event {
            Event::PartDelta {
                session_id,
                message_id,
                part_id,
                delta,
                ..
            } => Heard::Delta {
                session: session_id.clone(),
                key: format!("{message_id}/{part_id}"),
                text: delta.clone(),
            },
            Event::SessionStatus {
                session_id,
                status: now,
            } => Heard::Status(session_id.clone(), status(now)),
            Event::PartUpdated { part, .. } if has_progress(part) => Heard::Progress(part.clone()),
            _ => Heard::Stored,
        };
        if let Some(queue) = lock(&self.queue).as_ref() {
            let _ = queue.send(heard);
        }
    }

    /// Handles missed events: stored ones are read.
    pub fn wake(&self) {
        if let Some(queue) = lock(&self.queue).as_ref() {
            let _ = queue.send(Heard::Stored);
        }
    }

    /// Subscribes.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn subscribe(&self) -> Result<Subscription, StoreError> {
        self.followers.fetch_add(1, Ordering::SeqCst);
        loop {
            let (answer, subscription) = oneshot::channel();
            let _ = self.queue().send(Heard::Subscribe(answer));
            if let Ok(subscription) = subscription.await {
                return Ok(subscription);
            }
            // Its task ended with an error of the store: another one tries.
            if let Err(error) = self.reader.store().head() {
                self.followers.fetch_sub(1, Ordering::SeqCst);
                return Err(error);
            }
        }
    }

    fn queue(&self) -> mpsc::UnboundedSender<Heard> {
        let mut kept = lock(&self.queue);
        if let Some(queue) = kept.as_ref().filter(|queue| !queue.is_closed()) {
            return queue.clone();
        }
        let (queue, heard) = mpsc::unbounded_channel();
        let task = Task {
            reader: Arc::clone(&self.reader),
            followers: Arc::clone(&self.followers),
            items: broadcast::channel(CAPACITY).0,
            at: 0,
            writing: HashMap::new(),
            ended: HashSet::new(),
        };
        tokio::spawn(task.run(heard));
        *kept = Some(queue.clone());
        queue
    }
}

/// Returns whether it is progress of a running tool, which is stored only at its end.
fn has_progress(part: &Part) -> bool {
    let PartKind::Tool(call) = &part.kind else {
        return false;
    };
    matches!(
        call.state,
        ToolState::Running {
            metadata: Some(_),
            ..
        }
    )
}

struct Task {
    reader: Arc<Reader>,
    followers: Arc<AtomicUsize>,
    items: broadcast::Sender<Arc<Item>>,
    at: i64,
    writing: HashMap<String, (SessionId, String)>,
    /// Entries that are complete.
    ended: HashSet<String>,
}

impl Task {
    async fn run(mut self, mut heard: mpsc::UnboundedReceiver<Heard>) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_followed = self.items.receiver_count() > 0;
            let next = tokio::select! {
                biased;
                next = heard.recv() => match next {
                    Some(next) => next,
                    None => return,
                },
                _ = look.tick(), if is_followed => Heard::Stored,
            };
            if let Err(error) = self.on(next) {
                tracing::error!("[conversation] the log cannot be followed: {error}");
                return;
            }
        }
    }

    fn on(&mut self, heard: Heard) -> Result<(), StoreError> {
        match heard {
            Heard::Stored => self.read(),
            Heard::Delta { session, key, text } => {
                self.delta(session, key, text);
                Ok(())
            }
            Heard::Progress(part) => {
                // If it is stored, it is read.
                self.read()?;
                let key = format!("{}/{}", part.message_id, part.id);
                let session = part.session_id.clone();
                if !self.ended.contains(&key)
                    && let Some(entry) = self.reader.progress(&session, &part)
                {
                    let entry = Box::new(entry);
                    self.beside(session, &StreamItem::Progress { entry });
                }
                Ok(())
            }
            Heard::Status(conversation, status) => {
                let session = conversation.clone();
                let item = StreamItem::Status {
                    conversation,
                    status,
                };
                self.beside(session, &item);
                Ok(())
            }
            Heard::Subscribe(answer) => {
                if self.items.receiver_count() == 0 {
                    self.at = self.reader.store().head()?.seq;
                    self.writing.clear();
                    self.ended.clear();
                } else {
                    self.read()?;
                }
                let _ = answer.send(self.subscription());
                Ok(())
            }
        }
    }

    fn subscription(&self) -> Subscription {
        let writing = self
            .writing
            .iter()
            .filter(|(_, (_, text))| !text.is_empty());
        let delta = |(key, (session, text)): (&String, &(SessionId, String))| {
            let item = StreamItem::Delta {
                conversation: session.clone(),
                key: key.clone(),
                text: text.clone(),
                start: true,
            };
            (session.clone(), line(&item))
        };
        Subscription {
            items: self.items.subscribe(),
            at: self.at,
            writing: writing.map(delta).collect(),
            followers: Arc::clone(&self.followers),
        }
    }

    /// Sends new records of the log.
    fn read(&mut self) -> Result<(), StoreError> {
        loop {
            let records = self.reader.store().records(&RecordQuery {
                kind: Some("event"),
                after: self.at,
                limit: Some(RECORDS),
                ..RecordQuery::default()
            })?;
            let more = records.len() == RECORDS;
            for record in records {
                self.at = record.seq;
                if let Some(stored) = Stored::of(record) {
                    self.note(&stored);
                    let _ = self.items.send(Arc::new(Item::Stored(stored)));
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Updates the live state for a stored event.
    fn note(&mut self, stored: &Stored) {
        match &stored.event.event {
            Event::SessionUpdated { session_id, .. } => self.reader.forget(session_id),
            Event::MessageRemoved { session_id, .. } => self.reader.forget_opening(session_id),
            Event::PartUpdated { part, .. } => {
                let key = format!("{}/{}", part.message_id, part.id);
                let is_ended = match &part.kind {
                    PartKind::Text(text) => text.time.as_ref().is_none_or(|it| it.end.is_some()),
                    PartKind::Reasoning(thought) => thought.time.end.is_some(),
                    PartKind::Tool(call) => call.state.is_final(),
                    _ => true,
                };
                if is_ended {
                    self.writing.remove(&key);
                    if self.ended.len() >= MAX_ENDED {
                        self.ended.clear();
                    }
                    self.ended.insert(key);
                }
            }
            Event::SessionIdle { session_id } => {
                self.writing.retain(|_, (session, _)| session != session_id);
            }
            _ => {}
        }
    }

    fn delta(&mut self, session: SessionId, key: String, text: String) {
        if self.ended.contains(&key) {
            return;
        }
        let (_, so_far) = self
            .writing
            .entry(key.clone())
            .or_insert_with(|| (session.clone(), String::new()));
        let start = so_far.is_empty();
        so_far.push_str(&text);
        let item = StreamItem::Delta {
            conversation: session.clone(),
            key,
            text,
            start,
        };
        self.beside(session, &item);
    }

    fn beside(&self, session: SessionId, item: &StreamItem) {
        let line = line(item);
        let _ = self.items.send(Arc::new(Item::Beside { session, line }));
    }
}

/// Returns the stored events after a record, of a session or of all.
pub(crate) fn stored_after(
    reader: &Reader,
    only: Option<&SessionId>,
    after: i64,
) -> Result<Vec<StoredRecord>, StoreError> {
    reader.store().records(&RecordQuery {
        scope: only.map(Scope::Session),
        kind: Some("event"),
        after,
        limit: Some(RECORDS),
    })
}
