//! Hook calls, their answers ([`HookOutcome`]) and their records.

mod outcome;

pub use outcome::{Block, HookFailure, HookOutcome, OutcomeKind, Patch};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Millis;
use crate::id::{PluginId, SessionId, TurnId};

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

impl Decision {
    /// As it is stored.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Patch => "patch",
            Self::Block => "block",
            Self::Refused => "refused",
            Self::FailedOpen => "failed_open",
            Self::FailedClosed => "failed_closed",
            Self::Skipped => "skipped",
        }
    }
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
    /// What its call came to.
    pub outcome: OutcomeKind,
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
    /// after long calls, so that of short calls in a shared process is in none.
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

/// What only the audit keeps of a handler's run; it is not in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAudit {
    /// Step of the turn.
    pub step: Option<String>,
    /// Hash of what it was given: input and output of every item, as JSON. Behind a handler whose answer was taken it is
    /// the hash over the hash before and the hash of that answer, so that a long history is hashed once.
    pub input_hash: Option<String>,
    /// Hash of its answer (the list of its changes), where it gave one that changes something.
    pub output_hash: Option<String>,
    /// Several plugins share its process.
    pub claimed: bool,
    /// Plugin that it hosts and that ran (C8).
    pub sub_plugin: Option<PluginId>,
    /// The rule against which its answer, or a part of it, was.
    pub refused: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deleted_key_and_a_null_are_distinguished() {
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
