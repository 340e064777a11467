//! What the routes take and answer.

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

/// Whose an entry is (E1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The session.
    pub conversation: SessionId,
    /// The session that a person began: the same, or for a subagent's the one at the beginning.
    pub task: SessionId,
    /// The prompt that it is, or that it answers.
    pub attempt: MessageId,
}

/// A message at its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it stands; an entry takes the place of the one that has its key.
    pub key: String,
    /// How far it is.
    pub state: EntryState,
    /// Whose it is.
    #[serde(flatten)]
    pub channel: Channel,
    /// The message.
    pub message: ConversationMessage,
    /// Texts of the message that are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortened: Vec<Shortened>,
}

/// A text of a message that is cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortened {
    /// Where, as a JSON pointer into the message.
    pub at: String,
    /// Bytes of all of it.
    pub bytes: usize,
    /// By which it is fetched.
    #[serde(rename = "ref")]
    pub reference: String,
}

/// Entries in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// What `before` of the next, older page is; none where there is none.
    pub next: Option<String>,
    /// Number of the log's last record when it was read: the stream goes on after it.
    pub event: i64,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The session.
    pub id: SessionId,
    /// Title.
    pub title: String,
    /// Folder that it works in.
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
    /// What it is doing.
    pub status: Status,
    /// What waits for a person, in it and in what its agents started.
    pub waiting: Vec<Waiting>,
    /// Price so far in US dollars.
    pub cost: f64,
    /// Tokens so far.
    pub tokens: Tokens,
    /// Changed files, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// What is reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<SessionRevert>,
    /// The program that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// When it was made and last used.
    pub time: SessionTime,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing.
    #[default]
    Idle,
    /// A turn runs.
    Busy,
    /// A model request failed and will be sent again.
    Retry,
}

/// Conversations, what waits for a person first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationPage {
    /// The conversations.
    pub conversations: Vec<Conversation>,
    /// What `cursor` of the next page is.
    pub next: Option<String>,
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Waiting {
    /// May something be done?
    Permission {
        /// What.
        request: PermissionRequest,
        /// What people see of it.
        #[serde(default)]
        shown: ShownPermission,
    },
    /// The model asks.
    Question {
        /// What.
        request: QuestionRequest,
    },
}

impl Waiting {
    /// A permission question, with what people see of it.
    #[must_use]
    pub fn permission(request: PermissionRequest) -> Self {
        let shown = ShownPermission::of(&request);
        Self::Permission { request, shown }
    }

    /// The session that waits.
    #[must_use]
    pub fn conversation(&self) -> &SessionId {
        match self {
            Self::Permission { request, .. } => &request.session_id,
            Self::Question { request } => &request.session_id,
        }
    }
}

/// What a stream says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum StreamItem {
    /// Where it begins.
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
    /// An entry is gone, and all whose keys begin with it and `/`.
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
    /// A session is gone.
    Deleted {
        /// Session.
        conversation: SessionId,
    },
    /// Something waits for a person.
    Asked {
        /// What.
        waiting: Box<Waiting>,
    },
    /// It no longer does.
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
        /// This is all of it so far.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        start: bool,
    },
    /// What a running tool has printed so far.
    Progress {
        /// The entry as it would be.
        entry: Box<Entry>,
    },
    /// What a session is doing.
    Status {
        /// Session.
        conversation: SessionId,
        /// What.
        status: Status,
    },
}

/// A text that has what is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The session.
    pub conversation: SessionId,
    /// Its title.
    pub title: String,
    /// Folder that it works in.
    pub directory: String,
    /// The message.
    pub message: MessageId,
    /// Key of its entry.
    pub key: String,
    /// `text`, `reasoning`, `file`, `subtask` or a tool's name.
    pub kind: String,
    /// What stands before it.
    pub before: String,
    /// The first word, as it stands there.
    pub found: String,
    /// What stands after it.
    pub after: String,
}

/// Texts that have what is looked for, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchPage {
    /// The texts.
    pub hits: Vec<SearchHit>,
    /// What `cursor` of the next page is; a page may have no hits and still a next one.
    pub next: Option<String>,
}

/// A turn of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The turn.
    pub id: TurnId,
    /// Session.
    pub conversation: SessionId,
    /// The prompt that it answers, where it answers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<MessageId>,
    /// When it began.
    pub began: Millis,
    /// When its last step was.
    pub ended: Millis,
    /// It has not ended.
    pub open: bool,
}

/// What happened in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The turn.
    pub turn: Turn,
    /// By their beginning.
    pub spans: Vec<Span>,
}

/// Something of a turn that took time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// What.
    pub kind: SpanKind,
    /// Hook, tool or model.
    pub name: String,
    /// Begun.
    pub start: Millis,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// How it went.
    pub state: SpanState,
    /// Plugin that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Places that changed, as JSON pointers into what the hook was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
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

/// How something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanState {
    /// Well.
    Ok,
    /// It failed.
    Error,
    /// It was not called, or was refused.
    Skipped,
    /// It has not ended.
    Running,
}
