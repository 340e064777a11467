//! Types of the API's requests and responses.

use outrigger_protocol::hook::ChangedValue;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::merged::{ConversationMessage, EntryState};
use outrigger_protocol::message::Tokens;
use outrigger_protocol::origin::Origin;
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::question::QuestionRequest;
use outrigger_protocol::session::{SessionModel, SessionRevert, SessionSummary, SessionTime};
use outrigger_protocol::{Millis, Object};
use serde::{Deserialize, Serialize};

use crate::permission::ShownPermission;

/// The conversation and task of an entry (E1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The session.
    pub conversation: SessionId,
    /// The session that the user started: the same one, or for a subagent the first in its chain.
    pub task: SessionId,
    /// The prompt that it is, or that it answers.
    pub attempt: MessageId,
}

/// A message at its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its position; an entry replaces the one with the same key.
    pub key: String,
    /// Its state.
    pub state: EntryState,
    /// Its conversation and task.
    #[serde(flatten)]
    pub channel: Channel,
    /// The message.
    pub message: ConversationMessage,
    /// Texts of the message that are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Shortened>,
}

/// A shortened text of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    /// JSON pointer into the message.
    pub at: String,
    /// Length of the full text in bytes.
    pub bytes: usize,
    /// Reference to fetch the full text.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Entries in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The value of `before` for the next, older page; `None` at the end.
    pub next: Option<String>,
    /// Number of the log's last record at the time of reading: the stream continues after it.
    pub event: i64,
}

/// A session, as shown in lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The session.
    pub id: SessionId,
    /// Title.
    pub title: String,
    /// The beginning of its first prompt, on one line: it tells conversations with one title apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<String>,
    /// Its working directory.
    pub directory: String,
    /// Project.
    #[serde(rename = "projectID")]
    pub project_id: String,
    /// The session whose agent started it.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// The session that a person began.
    pub task: SessionId,
    /// Agent used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Model used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<SessionModel>,
    /// Its status.
    pub status: Status,
    /// What waits for a person, in it and in what its agents started.
    pub waiting: Vec<Waiting>,
    /// Cost so far in US dollars.
    pub cost: f64,
    /// Tokens so far.
    pub tokens: Tokens,
    /// Counts of changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// The reverted part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<SessionRevert>,
    /// The program that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// When it was created and last used.
    pub time: SessionTime,
}

/// The status of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Idle.
    #[default]
    Idle,
    /// A turn runs.
    Busy,
    /// A model request failed and will be sent again.
    Retry,
}

/// Conversations, those that wait for the user first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// The value of `cursor` for the next page.
    pub next: Option<String>,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Waiting {
    /// A permission question.
    Permission {
        /// The request.
        request: PermissionRequest,
        /// What users see of it.
        #[serde(default)]
        shown: ShownPermission,
    },
    /// A question of the model.
    Question {
        /// The request.
        request: QuestionRequest,
    },
}

impl Waiting {
    /// Creates a permission question, with its display.
    #[must_use]
    pub fn permission(request: PermissionRequest) -> Self {
        let shown = ShownPermission::of(&request);
        Self::Permission { request, shown }
    }

    /// Returns the session that waits.
    #[must_use]
    pub fn conversation(&self) -> &SessionId {
        match self {
            Self::Permission { request, .. } => &request.session_id,
            Self::Question { request } => &request.session_id,
        }
    }
}

/// An item of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum StreamItem {
    /// The start of the stream.
    Connected {
        /// Number in the log.
        event: i64,
    },
    /// The log is not the one that the client knows.
    Reset {
        /// Number in the log.
        event: i64,
    },
    /// An entry is new or has changed.
    Entry {
        /// The entry.
        entry: Box<Entry>,
    },
    /// An entry was removed, with all entries whose keys start with its key and `/`.
    Removed {
        /// Session.
        conversation: SessionId,
        /// Key.
        key: String,
    },
    /// A session is new or has changed.
    Conversation {
        /// The session.
        conversation: Box<Conversation>,
    },
    /// A session was deleted.
    Deleted {
        /// Session.
        conversation: SessionId,
    },
    /// A question to the user is open.
    Asked {
        /// The question.
        waiting: Box<Waiting>,
    },
    /// It is no longer open.
    Answered {
        /// Session.
        conversation: SessionId,
        /// Permission or question.
        id: String,
    },
    /// A piece of a text that is being written.
    Delta {
        /// Session.
        conversation: SessionId,
        /// Key of its entry.
        key: String,
        /// The piece.
        text: String,
        /// The piece is all of the text so far.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        start: bool,
    },
    /// What a running tool has printed so far.
    Progress {
        /// The entry as it would be stored.
        entry: Box<Entry>,
    },
    /// The status of a session.
    Status {
        /// Session.
        conversation: SessionId,
        /// The status.
        status: Status,
    },
}

/// A text that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The session.
    pub conversation: SessionId,
    /// Its title.
    pub title: String,
    /// Its working directory.
    pub directory: String,
    /// The message.
    pub message: MessageId,
    /// Key of its entry.
    pub key: String,
    /// `text`, `reasoning`, `file`, `subtask` or a tool's name.
    pub kind: String,
    /// The text before the match.
    pub before: String,
    /// The first word, as it stands there.
    pub found: String,
    /// The text after the match.
    pub after: String,
}

/// Matching texts, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPage {
    /// The matches.
    pub hits: Vec<SearchHit>,
    /// The value of `cursor` for the next page; a page may have no hits and still a next page.
    pub next: Option<String>,
}

/// A turn of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn.
    pub id: TurnId,
    /// Session.
    pub conversation: SessionId,
    /// The prompt that it answers, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<MessageId>,
    /// When it started.
    pub began: Millis,
    /// When its last step was.
    pub ended: Millis,
    /// It has not ended.
    pub open: bool,
}

/// The steps of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The turn.
    pub turn: Turn,
    /// Ordered by their start.
    pub spans: Vec<Span>,
}

/// A timed part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// Its kind.
    pub kind: SpanKind,
    /// Hook, tool or model.
    pub name: String,
    /// When it started.
    pub start: Millis,
    /// Its duration in milliseconds.
    pub duration_ms: f64,
    /// Its result.
    pub state: SpanState,
    /// The plugin that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Changed locations, as JSON pointers into the hook's input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What stood at the places that changed, without secrets and of bounded size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ChangedValue>,
    /// How many places changed besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_values: Option<u64>,
    /// Further facts: outcome, decision, permissions, tokens, cost, bytes.
    #[serde(default)]
    pub facts: Object,
}

/// Kinds of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// A request to a model.
    Model,
    /// A tool call.
    Tool,
    /// A handler at a hook point.
    Hook,
}

/// The result of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanState {
    /// It succeeded.
    Ok,
    /// It failed.
    Error,
    /// It was not called, or was refused.
    Skipped,
    /// It has not ended.
    Running,
}
