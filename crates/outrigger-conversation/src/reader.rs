//! Reads stored data in the form for clients.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use outrigger_api::{Channel, Conversation, Entry, EntryPage, Status, StreamItem, Waiting};
use outrigger_kernel::merge::{Author, Converter, Form};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::merged::{Change, Placed};
use outrigger_protocol::message::{MessageWithParts, Part, PartKind};
use outrigger_protocol::origin::Origin;
use outrigger_protocol::session::{Session, SessionStatus};
use outrigger_stdx::sync::lock;
use outrigger_store::{Store, StoreError};

use crate::shorten::{End, Reference, shorten};

/// Maximum bytes of a page; a single message may be larger.
const PAGE_BYTES: usize = 512 * 1024;
/// Maximum length of the beginning of a first prompt, in characters.
const OPENING: usize = 160;
/// Maximum size of the caches of sessions and messages; they are cleared when full.
const MAX_KNOWN: usize = 4096;
/// Maximum depth of sessions that started one another.
const MAX_DEPTH: usize = 32;

/// Data that only the running agents have.
pub trait Live: Send + Sync {
    /// Returns the active sessions.
    fn statuses(&self) -> BTreeMap<SessionId, SessionStatus>;
    /// Returns the open questions to the user.
    fn waiting(&self) -> Vec<Waiting>;
}

/// No agent runs.
pub struct Nothing;

impl Live for Nothing {
    fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        BTreeMap::new()
    }
    fn waiting(&self) -> Vec<Waiting> {
        Vec::new()
    }
}

/// Facts of a session that rarely or never change.
#[derive(Debug)]
pub(crate) struct SessionFacts {
    /// The session that a person began.
    pub(crate) task: SessionId,
    pub(crate) directory: String,
}

/// Reads conversations.
pub struct Reader {
    store: Store,
    live: Arc<dyn Live>,
    converter: Converter,
    sessions: Mutex<HashMap<SessionId, Arc<SessionFacts>>>,
    authors: Mutex<HashMap<(SessionId, MessageId), Author>>,
    openings: Mutex<HashMap<SessionId, String>>,
}

impl Reader {
    /// Creates a reader of a store, next to running agents.
    #[must_use]
    pub fn new(store: Store, live: Arc<dyn Live>) -> Self {
        Self {
            store,
            live,
            converter: Converter::default(),
            sessions: Mutex::default(),
            authors: Mutex::default(),
            openings: Mutex::default(),
        }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the data of the running agents.
    #[must_use]
    pub fn live(&self) -> &dyn Live {
        self.live.as_ref()
    }

    /// Returns up to `limit` messages before one, newest first, as entries.
    ///
    /// # Errors
    /// Those of the store.
    pub fn page(
        &self,
        session: &SessionId,
        before: Option<&MessageId>,
        limit: usize,
        form: Form,
    ) -> Result<EntryPage, StoreError> {
        let most = limit.saturating_add(1);
        let (event, messages) = self.store.newest_messages_at(session, before, most)?;
        let task = self.facts(session)?.task.clone();
        let (mut pages, mut bytes, mut next) = (Vec::new(), 0, None);
        let mut oldest: Option<&MessageId> = None;
        for (n, message) in messages.iter().rev().enumerate() {
            if n >= limit || n > 0 && bytes >= PAGE_BYTES {
                next = oldest.map(ToString::to_string);
                break;
            }
            let entries = self.entries(session, &task, message, form);
            bytes += entries.iter().map(size).sum::<usize>();
            pages.push(entries);
            oldest = Some(message.info.id());
        }
        Ok(EntryPage {
            entries: pages.into_iter().rev().flatten().collect(),
            next,
            event,
        })
    }

    /// Returns the full text of a shortened one; `None` if it no longer exists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn content(
        &self,
        session: &SessionId,
        reference: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(reference) = Reference::parse(reference) else {
            return Ok(None);
        };
        let (message, _) = reference.key.split_once('/').unwrap_or_default();
        let found = self.store.message(session, &message.into())?;
        Ok(found.and_then(|found| {
            let mut placed = self.placed(&found, reference.form);
            let placed = placed.find(|placed| placed.key == reference.key)?;
            reference.of(&placed.message)
        }))
    }

    fn placed<'m>(
        &'m self,
        message: &'m MessageWithParts,
        form: Form,
    ) -> impl Iterator<Item = Placed> + 'm {
        let author = Author::from(&message.info);
        message
            .parts
            .iter()
            .flat_map(move |part| self.converter.part(&author, part, form))
            .chain(Converter::info(&message.info))
    }

    fn entries(
        &self,
        session: &SessionId,
        task: &SessionId,
        message: &MessageWithParts,
        form: Form,
    ) -> Vec<Entry> {
        let channel = Channel {
            conversation: session.clone(),
            task: task.clone(),
            attempt: Author::from(&message.info).attempt,
        };
        let placed = self.placed(message, form);
        placed
            .map(|it| entry(channel.clone(), it, form, End::First))
            .collect()
    }

    /// Converts a stored event for clients.
    pub(crate) fn items(&self, event: &Event, form: Form) -> Vec<StreamItem> {
        match event {
            Event::SessionCreated { info, .. } | Event::SessionUpdated { info, .. } => {
                self.conversation_item(info)
            }
            Event::SessionDeleted { session_id, .. } => vec![StreamItem::Deleted {
                conversation: session_id.clone(),
            }],
            Event::PermissionAsked(request) => asked(Waiting::permission(request.clone())),
            Event::QuestionAsked(request) => asked(Waiting::Question {
                request: request.clone(),
            }),
            Event::PermissionReplied {
                session_id,
                request_id,
                ..
            } => answered(session_id, request_id.as_str()),
            Event::QuestionReplied {
                session_id,
                request_id,
                ..
            }
            | Event::QuestionRejected {
                session_id,
                request_id,
            } => answered(session_id, request_id.as_str()),
            other => self.changes(other, form),
        }
    }

    fn conversation_item(&self, session: &Session) -> Vec<StreamItem> {
        match self.conversation(session, &self.live.statuses(), &self.live.waiting()) {
            Ok(conversation) => vec![StreamItem::Conversation {
                conversation: Box::new(conversation),
            }],
            Err(error) => {
                tracing::warn!("[conversation] {error}");
                Vec::new()
            }
        }
    }

    fn changes(&self, event: &Event, form: Form) -> Vec<StreamItem> {
        let Some(session) = event.session_id() else {
            return Vec::new();
        };
        let author = match event {
            Event::PartUpdated { part, .. } => self.author(session, &part.message_id),
            Event::MessageUpdated { info, .. } => {
                Some(self.knows(session, Author::from(info.as_ref()), info.id()))
            }
            _ => None,
        };
        let changes = self.converter.event(event, author.as_ref(), form);
        let attempt = author.map(|author| author.attempt);
        let channel = |placed: &Placed| self.channel(session, attempt.clone(), placed);
        let item = |change| match change {
            Change::Put(placed) => StreamItem::Entry {
                entry: Box::new(entry(channel(&placed), placed, form, End::First)),
            },
            Change::Remove(key) => StreamItem::Removed {
                conversation: session.clone(),
                key,
            },
        };
        changes.into_iter().map(item).collect()
    }

    fn channel(&self, session: &SessionId, attempt: Option<MessageId>, placed: &Placed) -> Channel {
        let task = self.facts(session).map(|facts| facts.task.clone());
        let (message, _) = placed.key.split_once('/').unwrap_or_default();
        Channel {
            conversation: session.clone(),
            task: task.unwrap_or_else(|_| session.clone()),
            attempt: attempt.unwrap_or_else(|| message.into()),
        }
    }

    /// Returns a running tool's output so far. The same in both forms.
    pub(crate) fn progress(&self, session: &SessionId, part: &Part) -> Option<Entry> {
        let author = self.author(session, &part.message_id)?;
        let placed = self.converter.part(&author, part, Form::Merged).pop()?;
        let channel = self.channel(session, Some(author.attempt), &placed);
        Some(entry(channel, placed, Form::Merged, End::Last))
    }

    fn author(&self, session: &SessionId, message: &MessageId) -> Option<Author> {
        let key = (session.clone(), message.clone());
        if let Some(author) = lock(&self.authors).get(&key) {
            return Some(author.clone());
        }
        let found = self.store.message(session, message).ok()??;
        Some(self.knows(session, Author::from(&found.info), message))
    }

    fn knows(&self, session: &SessionId, author: Author, message: &MessageId) -> Author {
        let mut authors = lock(&self.authors);
        if authors.len() >= MAX_KNOWN {
            authors.clear();
        }
        authors.insert((session.clone(), message.clone()), author.clone());
        author
    }

    /// Returns the facts of a session. A deleted session is its own task.
    pub(crate) fn facts(&self, id: &SessionId) -> Result<Arc<SessionFacts>, StoreError> {
        if let Some(facts) = lock(&self.sessions).get(id) {
            return Ok(Arc::clone(facts));
        }
        let session = self.store.session(id)?;
        let directory = session.as_ref().map(|it| it.directory.clone());
        let mut task = id.clone();
        let mut parent = session.and_then(|it| it.parent_id);
        for _ in 0..MAX_DEPTH {
            let Some(above) = parent else { break };
            parent = self.store.session(&above)?.and_then(|it| it.parent_id);
            task = above;
        }
        let facts = Arc::new(SessionFacts {
            task,
            directory: directory.unwrap_or_default(),
        });
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MAX_KNOWN {
            sessions.clear();
        }
        sessions.insert(id.clone(), Arc::clone(&facts));
        Ok(facts)
    }

    /// Returns the beginning of a session's first prompt, on one line. It is kept until a message is taken
    /// back.
    fn opening(&self, id: &SessionId) -> Result<Option<String>, StoreError> {
        if let Some(known) = lock(&self.openings).get(id) {
            return Ok(Some(known.clone()));
        }
        let first = self.store.first_message(id)?;
        let opening = first.as_ref().and_then(opening);
        if let Some(opening) = &opening {
            let mut openings = lock(&self.openings);
            if openings.len() >= MAX_KNOWN {
                openings.clear();
            }
            openings.insert(id.clone(), opening.clone());
        }
        Ok(opening)
    }

    /// Drops a session from the cache: it may have moved to another folder.
    pub(crate) fn forget(&self, id: &SessionId) {
        lock(&self.sessions).remove(id);
    }

    /// Drops the beginning of a session's first prompt from the cache: another one may be the first now.
    pub(crate) fn forget_opening(&self, id: &SessionId) {
        lock(&self.openings).remove(id);
    }

    /// Returns a session as shown in lists.
    ///
    /// # Errors
    /// Those of the store.
    pub fn conversation(
        &self,
        session: &Session,
        statuses: &BTreeMap<SessionId, SessionStatus>,
        waiting: &[Waiting],
    ) -> Result<Conversation, StoreError> {
        let mut own = Vec::new();
        for one in waiting {
            let of = one.conversation();
            if *of == session.id || self.facts(of)?.task == session.id {
                own.push(one.clone());
            }
        }
        let facts = self.facts(&session.id)?;
        Ok(Conversation {
            id: session.id.clone(),
            title: session.title.clone(),
            opening: self.opening(&session.id)?,
            directory: session.directory.clone(),
            project_id: session.project_id.clone(),
            parent_id: session.parent_id.clone(),
            task: facts.task.clone(),
            agent: session.agent.clone(),
            model: session.model.clone(),
            status: statuses.get(&session.id).map(status).unwrap_or_default(),
            waiting: own,
            cost: session.cost,
            tokens: session.tokens.clone(),
            summary: session.summary.clone(),
            revert: session.revert.clone(),
            origin: Origin::of(session),
            time: session.time.clone(),
        })
    }
}

/// Returns the beginning of a message's own text, with single spaces.
pub(crate) fn opening(message: &MessageWithParts) -> Option<String> {
    let text = message.parts.iter().find_map(|part| match &part.kind {
        PartKind::Text(text) if text.synthetic != Some(true) => Some(text.text.as_str()),
        _ => None,
    })?;
    let mut opening = String::new();
    for word in text.split_whitespace() {
        if !opening.is_empty() {
            opening.push(' ');
        }
        opening.push_str(word);
        if opening.chars().count() > OPENING {
            let cut: String = opening.chars().take(OPENING).collect();
            return Some(format!("{cut}…"));
        }
    }
    Some(opening).filter(|it| !it.is_empty())
}

pub(crate) fn status(status: &SessionStatus) -> Status {
    match status {
        SessionStatus::Idle => Status::Idle,
        SessionStatus::Busy => Status::Busy,
        SessionStatus::Retry { .. } => Status::Retry,
    }
}

fn asked(waiting: Waiting) -> Vec<StreamItem> {
    vec![StreamItem::Asked {
        waiting: Box::new(waiting),
    }]
}

fn answered(session: &SessionId, id: &str) -> Vec<StreamItem> {
    vec![StreamItem::Answered {
        conversation: session.clone(),
        id: id.to_owned(),
    }]
}

fn entry(channel: Channel, placed: Placed, form: Form, end: End) -> Entry {
    let Placed {
        key,
        state,
        mut message,
    } = placed;
    let shortened = shorten(&mut message, &key, form, end);
    Entry {
        key,
        state,
        channel,
        message,
        shortened,
    }
}

/// Returns the approximate size of an entry in bytes.
fn size(entry: &Entry) -> usize {
    serde_json::to_string(entry).map_or(0, |text| text.len())
}
