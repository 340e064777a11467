//! What a handler's call came to.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Change;
use crate::conversation::message::NamedError;
use crate::plugin::transfer::Piece;

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
    pub fn record_text(&self) -> String {
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

    /// The error that clients get, where the outcome fails what it refuses.
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

/// What a handler's call came to: what it answered, or how it failed. From the frame of a process to the record there is no
/// other type for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HookOutcome {
    /// It left `output` as it was.
    #[default]
    Continue,
    /// It changed something.
    Patch(Patch),
    /// It refused.
    Block(Block),
    /// It gave no answer that counts.
    Failed(HookFailure),
}

/// What a handler changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// The changes of each item of the call, in the order in which they are made; none for an item that stays as it was.
    pub items: Vec<Vec<Change>>,
    /// Set when it removed, inserted or reordered messages of the conversation: the list, in terms of the one before.
    /// `items` count in the new one. Only used within the process that keeps the conversation.
    pub order: Option<Vec<Piece>>,
}

impl Patch {
    /// Whether nothing stands in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_none() && self.items.iter().all(Vec::is_empty)
    }
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFailure {
    /// It threw.
    Threw {
        /// What it said.
        message: String,
    },
    /// It did not answer in time.
    TimedOut {
        /// Its deadline, in milliseconds.
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

impl HookFailure {
    /// Its name in records.
    #[must_use]
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Threw { .. } => OutcomeKind::Error,
            Self::TimedOut { .. } => OutcomeKind::Timeout,
            Self::Lost { .. } => OutcomeKind::Lost,
            Self::Skipped { .. } => OutcomeKind::Skipped,
        }
    }
}

/// What is written down of it.
impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threw { message } | Self::Lost { message } => f.write_str(message),
            Self::TimedOut { ms } => write!(f, "no answer within {ms} ms"),
            Self::Skipped { reason } => write!(f, "not called: {reason}"),
        }
    }
}

impl From<HookFailure> for HookOutcome {
    fn from(failure: HookFailure) -> Self {
        Self::Failed(failure)
    }
}

impl HookOutcome {
    /// These changes, one list for each item of the call.
    #[must_use]
    pub fn patch(items: Vec<Vec<Change>>) -> Self {
        Self::Patch(Patch { items, order: None })
    }

    /// Its name in records.
    #[must_use]
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Continue | Self::Patch(_) => OutcomeKind::Ok,
            Self::Block(_) => OutcomeKind::Blocked,
            Self::Failed(failure) => failure.kind(),
        }
    }
}

/// An outcome as logs, figures and records name it (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// It answered.
    Ok,
    /// It refused.
    Blocked,
    /// It threw.
    Error,
    /// It missed its deadline.
    Timeout,
    /// Its process ended or broke the protocol.
    Lost,
    /// It was not called.
    Skipped,
    /// A plugin reached for a point that it may not reach (B8): nobody was called.
    Refused,
}

impl OutcomeKind {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Blocked => "blocked",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Lost => "lost",
            Self::Skipped => "skipped",
            Self::Refused => "refused",
        }
    }

    /// It was called, and failed.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Timeout | Self::Lost)
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_as_it_is_named() {
        for kind in [
            OutcomeKind::Ok,
            OutcomeKind::Blocked,
            OutcomeKind::Error,
            OutcomeKind::Timeout,
            OutcomeKind::Lost,
            OutcomeKind::Skipped,
            OutcomeKind::Refused,
        ] {
            assert_eq!(json!(kind), kind.name());
            assert_eq!(
                serde_json::from_value::<OutcomeKind>(json!(kind.name())).unwrap(),
                kind
            );
        }
    }
}
