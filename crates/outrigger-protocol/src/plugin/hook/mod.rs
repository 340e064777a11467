//! Hook calls, their answers ([`HookOutcome`]) and their records.

mod outcome;
mod values;

pub use outcome::{Block, HookFailure, HookOutcome, OutcomeKind, Patch};
pub use values::{ChangedValue, ChangedValues, RecordedValue};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Millis;
use crate::buffer::Buffer;
use crate::id::{PluginId, SessionId, TurnId};

/// One step into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Key {
    /// Index into an array.
    Index(usize),
    /// Key of an object.
    Name(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = match Buffer::deserialize(deserializer)? {
            Buffer::Unsigned(index) => usize::try_from(index).ok().map(Self::Index),
            Buffer::Text(name) => Some(Self::Name(name.into_owned())),
            _ => None,
        };
        // In serde's words for an enum without a tag.
        let neither = "data did not match any variant of untagged enum Key";
        key.ok_or_else(|| D::Error::custom(neither))
    }
}

/// A handler's change at one location of `output`. An answer is a list of these, so it contains only what changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The location; empty for the whole output.
    pub path: Vec<Key>,
    /// The new value; absent if the key was deleted (absent is not null).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    pub value: Option<Value>,
}

// `Option<Value>` would read an explicit null as absent; a deleted key and a null are different here.
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

/// The treatment of a handler's answer (C2, C3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Nothing changed.
    Continue,
    /// Its changes were applied.
    Patch,
    /// The handler blocked the operation.
    Block,
    /// Its answer is not allowed at this point and had no effect.
    Refused,
    /// The handler failed, and the chain continued with the output from before it.
    FailedOpen,
    /// The handler failed, and the operation was blocked.
    FailedClosed,
    /// The handler was not called.
    Skipped,
}

impl Decision {
    /// Returns the stored name.
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

/// How the payload of a call was transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The method.
    pub way: CarriedBy,
    /// Bytes transferred to the process, in frames and files: with a mirror, what changed.
    pub bytes: u64,
}

/// The methods of transferring a payload.
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
    /// Returns the name in the log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::File => "file",
            Self::Mirror => "mirror",
        }
    }
}

/// The record of one handler's run: the basis of `plugin trace`, `[plugin-perf]` and the audit (A1, A2, C13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Hook point, by our name.
    pub point: String,
    /// Hook, by OpenCode's name.
    pub hook: String,
    /// The called plugin.
    pub plugin: PluginId,
    /// Session, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Turn, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The result of its call.
    pub outcome: OutcomeKind,
    /// The treatment of the answer.
    pub decision: Decision,
    /// Size of the payload, in bytes.
    pub payload_bytes: u64,
    /// How the payload was transferred (A10, A14); `None` if nothing was sent to a plugin process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// Its duration in milliseconds.
    pub duration_ms: f64,
    /// CPU time in milliseconds that its process used for this plugin since its last record (A1). Measured once a second and
    /// after long calls, so short calls in a shared process are not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<f64>,
    /// Changed locations, as JSON pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// What stood there before and after, without secrets and of bounded size.
    #[serde(default, skip_serializing_if = "ChangedValues::is_empty")]
    pub values: ChangedValues,
    /// Error or refusal text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it started.
    pub at: Millis,
    /// For the audit only; not in the log.
    #[serde(skip)]
    pub audit: HookAudit,
}

impl HookRecord {
    /// Creates the record of a call of `hook` at `point` that let the chain continue, without session, payload or changes. The
    /// caller sets what applies with `..HookRecord::new(…)`.
    #[must_use]
    pub fn new(point: &str, hook: &str, plugin: PluginId, outcome: OutcomeKind) -> Self {
        Self {
            point: point.to_owned(),
            hook: hook.to_owned(),
            plugin,
            session: None,
            turn: None,
            outcome,
            decision: Decision::Continue,
            payload_bytes: 0,
            carried: None,
            duration_ms: 0.0,
            cpu_ms: None,
            changed: Vec::new(),
            values: ChangedValues::default(),
            message: None,
            at: 0,
            audit: HookAudit::default(),
        }
    }
}

/// Fields of a handler's run that only the audit keeps; they are not in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAudit {
    /// Step of the turn.
    pub step: Option<String>,
    /// Hash of its input: input and output of every item, as JSON. After a handler whose answer was applied, it is the hash
    /// over the previous hash and the hash of that answer, so that a long history is hashed once.
    pub input_hash: Option<String>,
    /// Hash of its answer (the list of its changes), if it changed something.
    pub output_hash: Option<String>,
    /// Several plugins share its process.
    pub claimed: bool,
    /// The plugin that it hosts and that ran (C8).
    pub sub_plugin: Option<PluginId>,
    /// The rule that its answer, or a part of it, violated.
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
