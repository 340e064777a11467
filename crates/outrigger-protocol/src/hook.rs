//! Hook calls, their answers and their records.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Millis;
use crate::audit::HookAudit;
use crate::history::History;
use crate::id::{PluginId, SessionId, TurnId};
use crate::message::NamedError;

/// One step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// Index into an array.
    Index(usize),
    /// Key of an object.
    Name(String),
}

/// What a handler did to one place of `output`. An answer is a list of these, so it carries only what changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Where; empty for the whole output.
    pub path: Vec<Key>,
    /// What stands there now; absent when the key was deleted (absent is not null).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub value: Option<Value>,
}

// `Option<Value>` would read an explicit null as absent; a deleted key and a null are different things here.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().unwrap_or(&Value::Null).serialize(serializer)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

/// A refusal: the thing that was about to happen does not (C2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Stable code: the plugin's own, or one of ours (`hook.threw` for an OpenCode hook that threw).
    pub code: String,
    /// For the model and for people.
    pub message: String,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl Block {
    /// For records: the text, with the code where it is a plugin's own (ours begin with `hook.`), and the details.
    #[must_use]
    pub fn told(&self) -> String {
        let mut text = match self.code.starts_with("hook.") {
            true => self.message.clone(),
            false => format!("{}: {}", self.code, self.message),
        };
        if !self.details.is_null() {
            text.push(' ');
            text.push_str(&self.details.to_string());
        }
        text
    }

    /// As clients are told of it, where it fails what it refuses.
    #[must_use]
    pub fn into_error(self, point: &str) -> NamedError {
        let mut data = json!({ "message": self.message, "code": self.code, "point": point });
        if let (false, Some(fields)) = (self.details.is_null(), data.as_object_mut()) {
            fields.insert("details".to_owned(), self.details);
        }
        NamedError {
            name: "HookBlockedError".to_owned(),
            data,
        }
    }
}

/// How a handler's call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum HandlerOutcome {
    /// It left `output` as it was, or changed these places. One list of changes for each item of the call.
    Answered {
        /// Per item: what changed; empty for unchanged.
        items: Vec<Vec<Change>>,
    },
    /// It took messages out of the conversation, put others in, or brought them into another order; and then it changed
    /// these places. Of the process that keeps the conversation only, and never stored.
    #[serde(skip)]
    Rearranged {
        /// The conversation.
        history: History,
        /// As for [`Self::Answered`], of the one item there is.
        changes: Vec<Change>,
    },
    /// It refused.
    Blocked(Block),
    /// It threw.
    Threw {
        /// What it said.
        message: String,
    },
    /// It did not answer in time.
    TimedOut {
        /// Its deadline.
        ms: u64,
    },
    /// Its process ended or broke the protocol.
    Lost {
        /// What is known of it.
        message: String,
    },
    /// It was not called.
    Skipped {
        /// Why: breaker open, plugin failed, cancelled.
        reason: String,
    },
}

impl HandlerOutcome {
    /// An answer that changes nothing.
    #[must_use]
    pub fn unchanged() -> Self {
        Self::Answered { items: Vec::new() }
    }
    /// The name used in logs and figures (A1).
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Answered { .. } | Self::Rearranged { .. } => "ok",
            Self::Blocked(_) => "blocked",
            Self::Threw { .. } => "error",
            Self::TimedOut { .. } => "timeout",
            Self::Lost { .. } => "lost",
            Self::Skipped { .. } => "skipped",
        }
    }
}

/// What was done with a handler's answer (C2, C3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Nothing changed.
    Continue,
    /// Its changes were taken.
    Patch,
    /// It stopped what was about to happen.
    Block,
    /// Its answer is not allowed at this point; it had no effect.
    Refused,
    /// It failed, and the chain went on with the output from before it.
    FailedOpen,
    /// It failed, and what was about to happen did not.
    FailedClosed,
    /// It was not called.
    Skipped,
}

/// How the payload of a call travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// By which way.
    pub way: CarriedBy,
    /// Bytes of the payload that went to the process, in frames and files: with a mirror, what changed.
    pub bytes: u64,
}

/// The ways of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarriedBy {
    /// In the request.
    Inline,
    /// In a file.
    File,
    /// As differences to what the process keeps.
    Mirror,
}

impl CarriedBy {
    /// As in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::File => "file",
            Self::Mirror => "mirror",
        }
    }
}

/// The record of one handler's run: what `plugin trace`, `[plugin-perf]` and the audit are made from (A1, A2, C13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Hook point, by our name.
    pub point: String,
    /// Hook, by OpenCode's name.
    pub hook: String,
    /// Who was called.
    pub plugin: PluginId,
    /// Session, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Turn, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// `ok`, `blocked`, `error`, `timeout`, `lost`, `skipped`.
    pub outcome: String,
    /// What became of the answer.
    pub decision: Decision,
    /// Size of what was sent, in bytes.
    pub payload_bytes: u64,
    /// How the payload travelled (A10, A14); none where nothing was sent to a plugin process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// CPU time of its process, in milliseconds, that is this plugin's since its last record (A1). Looked at once a second and
    /// behind long calls, so that of short calls in a shared process is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<f64>,
    /// Places that changed, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Error or refusal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it began.
    pub at: Millis,
    /// For the audit alone; not in the log.
    #[serde(skip)]
    pub audit: HookAudit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_key_and_a_null_are_told_apart() {
        let deleted: Change = serde_json::from_value(json!({"path":["a",0]})).unwrap();
        assert_eq!(deleted.value, None);
        let null: Change = serde_json::from_value(json!({"path":["a"],"value":null})).unwrap();
        assert_eq!(null.value, Some(Value::Null));
        assert_eq!(
            serde_json::to_value(&null).unwrap(),
            json!({"path":["a"],"value":null})
        );
        assert_eq!(
            serde_json::to_value(&deleted).unwrap(),
            json!({"path":["a",0]})
        );
    }
}
