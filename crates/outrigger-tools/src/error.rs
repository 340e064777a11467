//! Errors of tool calls. The text of an error is what the model reads.

use outrigger_protocol::diagnose::Diagnose;
use serde_json::Value;

/// The reason why a tool call failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// No tool of that name is registered.
    #[error(
        "Model tried to call unavailable tool '{tool}'. Available tools: {}.",
        available.join(", ")
    )]
    NotFound {
        /// The requested name.
        tool: String,
        /// The available tools.
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
    /// A plugin's hook changed the arguments, and they no longer satisfy the schema (invariant 7).
    #[error(
        "A plugin changed the arguments of the {tool} tool so that they are no longer valid: {reason}\nThe tool did not run."
    )]
    InvalidRewrite {
        /// Tool.
        tool: String,
        /// Which argument is wrong and how.
        reason: String,
    },
    /// A rule denied the call, or the user did and said what to do instead. The text is the host's.
    #[error("{0}")]
    Denied(String),
    /// The user rejected the call, or no user is present to decide: the turn ends after this step. The text is the host's.
    #[error("{0}")]
    Rejected(String),
    /// A hook refused, or threw. The text is the hook's own, as in OpenCode.
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
    /// A temporary failure outside; only this error is retried, and only for tools that are safe to repeat (D7).
    #[error("{0}")]
    Unavailable(String),
    /// The tool reported an error.
    #[error("{0}")]
    Failed(String),
    /// The caller was not granted what the tool needs (D7).
    #[error("The {tool} tool needs {}, which {who} has not been granted. Do without it, or ask the user to grant it.", missing.join(" and "))]
    NotGranted {
        /// Tool.
        tool: String,
        /// Names of capabilities.
        missing: Vec<&'static str>,
        /// The caller: an agent, or the plugin whose tool it is.
        who: String,
        /// What the user can do.
        how: String,
    },
    /// The call has no canonical form (D7).
    #[error("The call of the {tool} tool is malformed: {reason}")]
    Malformed {
        /// Tool.
        tool: String,
        /// The reason.
        reason: &'static str,
    },
    /// The answer does not satisfy the tool's own output schema.
    #[error(
        "The answer of the {tool} tool does not satisfy its own output schema: {reason}\nThis is a mistake in the tool, not in the call."
    )]
    InvalidOutput {
        /// Tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// The tool would do locally, without a contract, what routing rules assign to another provider (C11).
    #[error(
        "The {tool} tool works on this machine, and `{contract}` is done by {provider}: what it found here would not be what is there. Use the tools of that contract, or a command where commands run there."
    )]
    Elsewhere {
        /// Tool.
        tool: String,
        /// The contract that is routed.
        contract: &'static str,
        /// The provider.
        provider: String,
    },
    /// A path outside the tool's roots.
    #[error("The {tool} tool is held to {}, and {path} is outside of it", roots.join(", "))]
    OutsideRoots {
        /// Tool.
        tool: String,
        /// The resolved path.
        path: String,
        /// The roots.
        roots: Vec<String>,
    },
    /// The machine's policy forbids a file or a program.
    #[error(
        "The policy of this machine forbids {what} (`{pattern}`). Do not try to reach it by other means."
    )]
    Forbidden {
        /// The file or program.
        what: String,
        /// The pattern that forbids it.
        pattern: String,
    },
    /// A tool that cannot be registered because its declaration is invalid (D6).
    #[error("Tool '{tool}' cannot be registered: `{key}`: {reason}")]
    BadDescriptor {
        /// Tool.
        tool: String,
        /// Key of the descriptor.
        key: &'static str,
        /// The reason.
        reason: String,
    },
    /// A tool that cannot be registered because its schema is not a JSON Schema.
    #[error("Tool '{tool}' has a parameter schema that cannot be used: {reason}")]
    BadSchema {
        /// Tool.
        tool: String,
        /// The reason.
        reason: String,
    },
}

impl Diagnose for ToolError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "tool.not_found",
            Self::InvalidInput { .. } | Self::InvalidRewrite { .. } => "tool.invalid_input",
            Self::Denied(_) => "tool.denied",
            Self::Rejected(_) => "tool.rejected",
            Self::Blocked(_) => "tool.blocked",
            Self::Timeout { .. } => "tool.timeout",
            Self::Cancelled => "tool.cancelled",
            Self::Unavailable(_) | Self::Failed(_) => "tool.failed",
            Self::BadSchema { .. } => "tool.bad_schema",
            Self::BadDescriptor { .. } => "tool.bad_descriptor",
            Self::NotGranted { .. } => "tool.not_granted",
            Self::Malformed { .. } => "tool.malformed",
            Self::InvalidOutput { .. } => "tool.invalid_output",
            Self::Elsewhere { .. } => "tool.elsewhere",
            Self::OutsideRoots { .. } => "tool.outside_roots",
            Self::Forbidden { .. } => "tool.forbidden",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::InvalidRewrite { .. } => {
                Some("`outrigger plugin list` names the plugins with a `tool.execute.before` hook; run with --pure to do without them".to_owned())
            }
            Self::Denied(_) | Self::Rejected(_) => Some(
                "allow it under `permission` in opencode.json, or run with a terminal to be asked"
                    .to_owned(),
            ),
            Self::NotGranted { how, .. } => Some(how.clone()),
            Self::Elsewhere { tool, .. } => Some(format!(
                "`[[routes]]` in your outrigger.toml says who does it; a first rule with tool = \"{tool}\" and provider = \"local\" lets this tool work here"
            )),
            Self::Forbidden { .. } => Some(
                "`outrigger doctor` shows the policy, which only the machine's administrator changes"
                    .to_owned(),
            ),
            Self::BadDescriptor { .. } | Self::InvalidOutput { .. } => {
                Some("the plugin that brings the tool has to fix what it declares".to_owned())
            }
            Self::BadSchema { .. } => {
                Some("the plugin that brings the tool has to fix its `args`".to_owned())
            }
            _ => None,
        }
    }
}

impl ToolError {
    /// Creates an error with this text.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Creates an error about a file, with the attempted operation.
    #[must_use]
    pub fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("Could not {what} {}: {error}", path.display()))
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
