//! What can go wrong with a tool call. The text of an error is what the model reads.

use serde_json::Value;

/// Why a tool call did not end well.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// No tool of that name is registered.
    #[error(
        "Model tried to call unavailable tool '{tool}'. Available tools: {}.",
        available.join(", ")
    )]
    NotFound {
        /// What was asked for.
        tool: String,
        /// What there is.
        available: Vec<String>,
    },
    /// The arguments do not satisfy the tool's schema.
    #[error(
        "The {tool} tool was called with invalid arguments: {reason}\nPlease rewrite the input so it satisfies the expected schema."
    )]
    InvalidInput {
        /// Tool.
        tool: String,
        /// Which argument is wrong and how.
        reason: String,
    },
    /// A plugin's hook changed the arguments so that they no longer satisfy the schema (invariant 7).
    #[error(
        "A plugin changed the arguments of the {tool} tool so that they are no longer valid: {reason}\nThe tool did not run."
    )]
    InvalidRewrite {
        /// Tool.
        tool: String,
        /// Which argument is wrong and how.
        reason: String,
    },
    /// The user or a rule said no. The text is the host's.
    #[error("{0}")]
    Denied(String),
    /// A hook refused, or threw. The text is the hook's own, as in the reference.
    #[error("{0}")]
    Blocked(String),
    /// The tool did not end in time.
    #[error("The {tool} tool did not finish within {ms} ms and was stopped.")]
    Timeout {
        /// Tool.
        tool: String,
        /// Its deadline in milliseconds.
        ms: u64,
    },
    /// The turn was cancelled while the tool ran.
    #[error("Tool execution aborted")]
    Cancelled,
    /// Something outside that may work the next time; only this one is retried, and only for read-only tools (D7).
    #[error("{0}")]
    Unavailable(String),
    /// The tool said what went wrong.
    #[error("{0}")]
    Failed(String),
    /// A tool that cannot be registered: its schema is not a JSON Schema.
    #[error("Tool '{tool}' has a parameter schema that cannot be used: {reason}")]
    BadSchema {
        /// Tool.
        tool: String,
        /// Why.
        reason: String,
    },
}

impl ToolError {
    /// An error with this text.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// An error about a file, with what was tried on it.
    #[must_use]
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("Could not {what} {}: {error}", path.display()))
    }

    /// Stable code, as in `ToolOutcome::Failed`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "tool.not_found",
            Self::InvalidInput { .. } | Self::InvalidRewrite { .. } => "tool.invalid_input",
            Self::Denied(_) => "tool.denied",
            Self::Blocked(_) => "tool.blocked",
            Self::Timeout { .. } => "tool.timeout",
            Self::Cancelled => "tool.cancelled",
            Self::Unavailable(_) | Self::Failed(_) => "tool.failed",
            Self::BadSchema { .. } => "tool.bad_schema",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::InvalidRewrite { .. } => {
                Some("`outrigger plugin list` names the plugins with a `tool.execute.before` hook; run with --pure to do without them".to_owned())
            }
            Self::Denied(_) => Some(
                "allow it under `permission` in opencode.json, or run with a terminal to be asked"
                    .to_owned(),
            ),
            Self::BadSchema { .. } => {
                Some("the plugin that brings the tool has to fix its `args`".to_owned())
            }
            _ => None,
        }
    }
}

/// Why an execution stopped, with what the tool had reported until then.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) error: ToolError,
    pub(crate) metadata: Option<Value>,
}

impl From<ToolError> for Stop {
    fn from(error: ToolError) -> Self {
        Self {
            error,
            metadata: None,
        }
    }
}
