//! The result of a handler's call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Change;
use crate::conversation::message::NamedError;
use crate::plugin::transfer::Piece;

/// A refusal: the operation is blocked (C2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Stable code: the plugin's own, or one of ours (`hook.threw` for an OpenCode hook that threw).
    pub code: String,
    /// For the model and the user.
    pub message: String,
    /// Further data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// Name of the plugin that refused. The host sets it; a process has no say in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}

impl Block {
    /// Returns the text for records: the message, with the code if it is a plugin's own (ours start with `hook.`), and the
    /// details.
    #[must_use]
    pub fn record_text(&self) -> String {
        let mut text = if self.code.starts_with("hook.") {
            self.message.clone()
        } else {
            format!("{}: {}", self.code, self.message)
        };
        if !self.details.is_null() {
            text.push(' ');
            text.push_str(&self.details.to_string());
        }
        text
    }

    /// Returns the error for clients, if the refusal fails the operation.
    #[must_use]
    pub fn into_error(self, point: &str) -> NamedError {
        let mut data = json!({ "message": self.message, "code": self.code, "point": point });
        if let (false, Some(fields)) = (self.details.is_null(), data.as_object_mut()) {
            fields.insert("details".to_owned(), self.details);
        }
        if let (Some(plugin), Some(fields)) = (self.plugin, data.as_object_mut()) {
            fields.insert("plugin".to_owned(), plugin.into());
        }
        NamedError {
            name: "HookBlockedError".to_owned(),
            data,
        }
    }
}

/// The result of a handler's call: its answer, or how it failed. The only type for it, from the frame of a process to the
/// record.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum HookOutcome {
    /// The handler left `output` unchanged.
    #[default]
    Continue,
    /// The handler changed something.
    Patch(Patch),
    /// The handler refused.
    Block(Block),
    /// The handler gave no valid answer.
    Failed(HookFailure),
}

/// The changes of a handler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// The changes of each item of the call, in order; empty for an unchanged item.
    pub items: Vec<Vec<Change>>,
    /// Set if it removed, inserted or reordered messages of the conversation: the list, in terms of the previous one.
    /// `items` refer to the new list. Only used within the process that keeps the conversation.
    pub order: Option<Vec<Piece>>,
}

impl Patch {
    /// Returns whether it contains no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_none() && self.items.iter().all(Vec::is_empty)
    }
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFailure {
    /// The handler threw.
    Threw {
        /// The message.
        message: String,
    },
    /// The handler missed its deadline.
    TimedOut {
        /// Its deadline, in milliseconds.
        ms: u64,
    },
    /// Its process ended or broke the protocol.
    Lost {
        /// What is known about it.
        message: String,
    },
    /// The handler was not called.
    Skipped {
        /// The reason: breaker open, plugin failed, cancelled.
        reason: String,
    },
}

impl HookFailure {
    /// Returns its name in records.
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

/// The text for records.
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
    /// Creates a patch, with one list for each item of the call.
    #[must_use]
    pub fn patch(items: Vec<Vec<Change>>) -> Self {
        Self::Patch(Patch { items, order: None })
    }

    /// Returns its name in records.
    #[must_use]
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Self::Continue | Self::Patch(_) => OutcomeKind::Ok,
            Self::Block(_) => OutcomeKind::Blocked,
            Self::Failed(failure) => failure.kind(),
        }
    }
}

/// The kind of a result in logs, statistics and records (A1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeKind {
    /// The handler answered.
    Ok,
    /// The handler refused.
    Blocked,
    /// The handler threw.
    Error,
    /// The handler missed its deadline.
    Timeout,
    /// Its process ended or broke the protocol.
    Lost,
    /// The handler was not called.
    Skipped,
    /// A plugin triggered a point that it may not trigger (B8): no handler was called.
    Refused,
}

impl OutcomeKind {
    /// Returns the written name.
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

    /// Returns whether it was called, and failed.
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
