//! Bus events, in OpenCode's kinds and payloads.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::message::{MessageInfo, NamedError, Part};
use crate::conversation::permission::{PermissionRequest, Reply};
use crate::conversation::question::{Answer, QuestionRequest};
use crate::conversation::session::{Session, SessionStatus, Todo};
use crate::id::{EventId, MessageId, PartId, PermissionId, QuestionId, SessionId};
use crate::records::provenance::Provenance;
use crate::{Millis, Object};

/// An event with its identifier, as plugins and clients get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusEvent {
    /// Identifier.
    pub id: EventId,
    /// Kind and payload.
    #[serde(flatten)]
    pub event: Event,
}

/// Stored events of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEvents {
    /// Number of the log's last record.
    pub head: i64,
    /// In the order of the log.
    pub events: Vec<BusEvent>,
}

/// Every kind of event. The set is closed: events that plugins declare are [`Event::Custom`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "properties")]
#[expect(
    missing_docs,
    reason = "names and fields are those of OpenCode's wire format"
)]
pub enum Event {
    #[serde(rename = "session.created")]
    SessionCreated {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        info: Box<Session>,
    },
    #[serde(rename = "session.updated")]
    SessionUpdated {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        info: Box<Session>,
    },
    #[serde(rename = "session.deleted")]
    SessionDeleted {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        info: Box<Session>,
    },
    #[serde(rename = "session.status")]
    SessionStatus {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        status: SessionStatus,
    },
    #[serde(rename = "session.idle")]
    SessionIdle {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    #[serde(rename = "session.error")]
    SessionError {
        #[serde(default, rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        error: NamedError,
    },
    #[serde(rename = "session.diff")]
    SessionDiff {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        diff: Vec<Value>,
    },
    #[serde(rename = "session.compacted")]
    SessionCompacted {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
    },
    #[serde(rename = "message.updated")]
    MessageUpdated {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        info: Box<MessageInfo>,
    },
    #[serde(rename = "message.removed")]
    MessageRemoved {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    #[serde(rename = "message.part.updated")]
    PartUpdated {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        part: Box<Part>,
        time: Millis,
    },
    /// A piece of a streamed text. Not stored: the completed part is.
    #[serde(rename = "message.part.delta")]
    PartDelta {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "messageID")]
        message_id: MessageId,
        #[serde(rename = "partID")]
        part_id: PartId,
        field: String,
        delta: String,
    },
    #[serde(rename = "message.part.removed")]
    PartRemoved {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "messageID")]
        message_id: MessageId,
        #[serde(rename = "partID")]
        part_id: PartId,
    },
    #[serde(rename = "todo.updated")]
    TodoUpdated {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        todos: Vec<Todo>,
    },
    #[serde(rename = "permission.asked")]
    PermissionAsked(PermissionRequest),
    #[serde(rename = "permission.replied")]
    PermissionReplied {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "requestID")]
        request_id: PermissionId,
        reply: Reply,
        /// Who answered, if not the user. Not a key of OpenCode.
        #[serde(default, skip_serializing_if = "Provenance::is_plain")]
        provenance: Provenance,
    },
    #[serde(rename = "question.asked")]
    QuestionAsked(QuestionRequest),
    #[serde(rename = "question.replied")]
    QuestionReplied {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "requestID")]
        request_id: QuestionId,
        answers: Vec<Answer>,
    },
    #[serde(rename = "question.rejected")]
    QuestionRejected {
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        #[serde(rename = "requestID")]
        request_id: QuestionId,
    },
    #[serde(rename = "command.executed")]
    CommandExecuted {
        name: String,
        #[serde(rename = "sessionID")]
        session_id: SessionId,
        arguments: String,
        #[serde(rename = "messageID")]
        message_id: MessageId,
    },
    #[serde(rename = "file.edited")]
    FileEdited { file: String },
    #[serde(rename = "file.watcher.updated")]
    FileWatcherUpdated { file: String, event: String },
    /// Anything else: events of the store of a newer version and those that plugins declare.
    #[serde(untagged)]
    Custom(CustomEvent),
}

/// An event of a kind without a type in this version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomEvent {
    /// Kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// Payload.
    #[serde(default)]
    pub properties: Object,
    /// The depth of plugin events and points that led to it, including itself (B8). Known only at run time: neither
    /// stored nor sent to clients.
    #[serde(skip)]
    pub depth: u32,
}

impl Event {
    /// Returns the session that it is about, if any.
    #[must_use]
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::SessionCreated { session_id, .. }
            | Self::SessionUpdated { session_id, .. }
            | Self::SessionDeleted { session_id, .. }
            | Self::SessionStatus { session_id, .. }
            | Self::SessionIdle { session_id }
            | Self::SessionDiff { session_id, .. }
            | Self::SessionCompacted { session_id }
            | Self::MessageUpdated { session_id, .. }
            | Self::MessageRemoved { session_id, .. }
            | Self::PartUpdated { session_id, .. }
            | Self::PartDelta { session_id, .. }
            | Self::PartRemoved { session_id, .. }
            | Self::TodoUpdated { session_id, .. }
            | Self::PermissionReplied { session_id, .. }
            | Self::QuestionReplied { session_id, .. }
            | Self::QuestionRejected { session_id, .. }
            | Self::CommandExecuted { session_id, .. } => Some(session_id),
            Self::PermissionAsked(request) => Some(&request.session_id),
            Self::QuestionAsked(request) => Some(&request.session_id),
            Self::SessionError { session_id, .. } => session_id.as_ref(),
            Self::FileEdited { .. } | Self::FileWatcherUpdated { .. } | Self::Custom(_) => None,
        }
    }

    /// Returns the kind's name on the wire.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::SessionCreated { .. } => "session.created",
            Self::SessionUpdated { .. } => "session.updated",
            Self::SessionDeleted { .. } => "session.deleted",
            Self::SessionStatus { .. } => "session.status",
            Self::SessionIdle { .. } => "session.idle",
            Self::SessionError { .. } => "session.error",
            Self::SessionDiff { .. } => "session.diff",
            Self::SessionCompacted { .. } => "session.compacted",
            Self::MessageUpdated { .. } => "message.updated",
            Self::MessageRemoved { .. } => "message.removed",
            Self::PartUpdated { .. } => "message.part.updated",
            Self::PartDelta { .. } => "message.part.delta",
            Self::PartRemoved { .. } => "message.part.removed",
            Self::TodoUpdated { .. } => "todo.updated",
            Self::PermissionAsked(_) => "permission.asked",
            Self::PermissionReplied { .. } => "permission.replied",
            Self::QuestionAsked(_) => "question.asked",
            Self::QuestionReplied { .. } => "question.replied",
            Self::QuestionRejected { .. } => "question.rejected",
            Self::CommandExecuted { .. } => "command.executed",
            Self::FileEdited { .. } => "file.edited",
            Self::FileWatcherUpdated { .. } => "file.watcher.updated",
            Self::Custom(custom) => &custom.kind,
        }
    }

    /// Returns whether it is published before it is stored, as streamed deltas are; everything else is stored first
    /// (invariant 6).
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::PartDelta { .. } | Self::SessionStatus { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_kinds_are_typed_and_unknown_ones_survive() {
        let idle = json!({"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_1"}});
        let event: BusEvent = serde_json::from_value(idle.clone()).unwrap();
        assert!(matches!(event.event, Event::SessionIdle { .. }));
        assert_eq!(serde_json::to_value(&event).unwrap(), idle);

        let custom = json!({"id":"evt_2","type":"acme.ready","properties":{"a":1}});
        let event: BusEvent = serde_json::from_value(custom.clone()).unwrap();
        assert_eq!(event.event.kind(), "acme.ready");
        assert_eq!(serde_json::to_value(&event).unwrap(), custom);
    }
}
