//! Errors of requests.

use outrigger_agent::AgentError;
use outrigger_protocol::diagnose::Diagnose;

/// A request that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    code: String,
    message: String,
    hint: Option<String>,
}

impl ClientError {
    /// The code of a usage error.
    pub const USAGE: &str = "cli.usage";

    /// Creates an error with its stable code and a hint.
    pub fn new(code: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint,
        }
    }

    /// Creates a usage error.
    pub fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self::new(Self::USAGE, message, hint)
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns what failed.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns whether it has this code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Returns whether the other side answered with a refusal.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        ["agent.refused", "attach.refused"].contains(&self.code.as_str())
    }

    /// Creates the error for a lost server.
    #[must_use]
    pub fn gone() -> Self {
        Self::new(
            "attach.gone",
            "lost the connection to the server; the conversation is saved",
            Some("restart the server and use --continue".into()),
        )
    }
}

impl From<AgentError> for ClientError {
    fn from(error: AgentError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
