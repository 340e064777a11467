//! Records of the append-only log. Events, audit and turn steps are derived from it.

use serde::{Deserialize, Serialize};

use crate::Millis;
use crate::conversation::event::BusEvent;
use crate::id::{MessageId, PluginId, SessionId, TurnId};
use crate::plugin::hook::HookRecord;
use crate::plugin::rpc::RanCalls;
use crate::records::provenance::Provenance;
use crate::records::turn::{EffectId, Input};
use crate::tools::tool::ToolCall;

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum LogRecord {
    /// An event published to clients and plugins. The source of projections.
    Event(Box<BusEvent>),
    /// One step of the turn machine: its input and, as intent, the resulting effects.
    TurnStep(Box<TurnStep>),
    /// One handler's run at a hook point.
    Hook(Box<HookRecord>),
    /// The execution of a tool call (C13).
    Tool(Box<ToolRecord>),
    /// A request that a plugin's client made.
    Client(Box<ClientRecord>),
    /// Notification-only hooks have run (A1).
    Observed(Box<RanCalls>),
    /// Plugins must be notified of a completed message, and which process started to (A4).
    Completion(Box<CompletionRecord>),
}

impl LogRecord {
    /// Returns the name in the `kind` column.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::TurnStep(_) => "turn_step",
            Self::Hook(_) => "hook",
            Self::Tool(_) => "tool",
            Self::Client(_) => "client",
            Self::Observed(_) => "observed",
            Self::Completion(_) => "completion",
        }
    }
    /// Returns its session.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Event(e) => e.event.session_id(),
            Self::TurnStep(s) => Some(&s.session_id),
            Self::Hook(h) => h.session.as_ref(),
            Self::Tool(t) => Some(&t.call.session_id),
            Self::Client(c) => c.session.as_ref(),
            Self::Observed(o) => o.session.as_ref(),
            Self::Completion(c) => Some(&c.session),
        }
    }
    /// Returns its turn.
    #[must_use]
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::Event(_) => None,
            Self::TurnStep(s) => Some(&s.turn),
            Self::Hook(h) => h.turn.as_ref(),
            Self::Tool(t) => t.turn.as_ref(),
            Self::Client(_) | Self::Observed(_) => None,
            Self::Completion(c) => c.turn.as_ref(),
        }
    }
}

/// One step of the turn machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnStep {
    /// The turn.
    pub turn: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Number of the step, from 0.
    pub n: u64,
    /// When.
    pub at: Millis,
    /// The machine's input.
    pub input: Input,
    /// The effects to execute (model and tool calls), recorded before they start.
    pub intents: Vec<EffectId>,
    /// Digest of every effect of the step; a replay must yield the same.
    pub digest: String,
    /// The turn ended with this step.
    #[serde(default)]
    pub last: bool,
    /// Why the turn was abandoned. Such a step is not the machine's: it closes a turn that cannot be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<String>,
}

/// The execution of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRecord {
    /// The call as the model made it.
    pub call: ToolCall,
    /// Turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Fingerprint of the final, normalised call (D7): 16 hexadecimal digits. Absent if it did not get that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Who caused it: the causes of the turn, the model, and who changed and approved it.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
    /// Permission decisions in order, as `permission pattern -> action`.
    pub permissions: Vec<String>,
    /// `completed` or the error's code.
    pub outcome: String,
    /// Number of retries after temporary failures.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
    /// It was not executed: an equal call of its step was, and it got the same answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// Its duration in milliseconds.
    pub duration_ms: f64,
    /// When it started.
    pub at: Millis,
    /// For the audit only; not in the log.
    #[serde(skip)]
    pub audit: ToolAudit,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Fields of a tool call that only the audit keeps; they are not in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAudit {
    /// When it ended; the intent was written after its start.
    pub ended: Millis,
    /// Step of the turn.
    pub step: Option<String>,
    /// The tool's plugin.
    pub plugin: Option<PluginId>,
    /// Several plugins share its process.
    pub claimed: bool,
    /// Hash of the tool's name and its arguments.
    pub input_hash: Option<String>,
    /// Hash of its result.
    pub output_hash: Option<String>,
}

/// A request that a plugin made to the API (C13), without the bodies of request and response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// The client's plugin; absent if a process requested one of our URLs itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginId>,
    /// HTTP method.
    pub method: String,
    /// Path, without its query.
    pub path: String,
    /// Session that the path names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// HTTP status of the answer.
    pub status: u16,
    /// Its duration in milliseconds.
    pub duration_ms: f64,
    /// When it was made.
    pub at: Millis,
}

/// A message of a model whose end was stored. Its first record is in the same transaction; the one with a `taker` is written
/// before the first handler is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionRecord {
    /// Session.
    pub session: SessionId,
    /// Message.
    pub message: MessageId,
    /// Turn that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The process that notifies plugins. The first one wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taker: Option<String>,
}

/// A row of the log, without its position in the hash chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow<'a> {
    /// When.
    pub at: i64,
    /// Kind of its record.
    pub kind: &'a str,
    /// Session, if it has one.
    pub session: Option<&'a str>,
    /// Turn, if it has one.
    pub turn: Option<&'a str>,
    /// The serialized record.
    pub body: &'a str,
}

/// Feeds the input of a row's hash (SHA-256): the previous hash and every field. Each field is preceded by its length and each
/// optional one by a byte for its presence, so that no two different rows have the same bytes.
pub fn frame(before: &[u8], row: &LogRow<'_>, take: &mut impl FnMut(&[u8])) {
    fn field(bytes: &[u8], take: &mut impl FnMut(&[u8])) {
        take(&(bytes.len() as u64).to_be_bytes());
        take(bytes);
    }
    fn optional(text: Option<&str>, take: &mut impl FnMut(&[u8])) {
        match text {
            None => take(&[0]),
            Some(text) => {
                take(&[1]);
                field(text.as_bytes(), take);
            }
        }
    }
    field(b"outrigger-log-1", take);
    field(before, take);
    take(&row.at.to_be_bytes());
    field(row.kind.as_bytes(), take);
    optional(row.session, take);
    optional(row.turn, take);
    field(row.body.as_bytes(), take);
}
