//! What a request comes to that is not answered with what it asked for.

use outrigger_agent::AgentError;

/// A request that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ClientError {
    code: String,
    message: String,
    hint: Option<String>,
}

impl ClientError {
    /// The code of what the user typed wrong.
    pub const USAGE: &str = "cli.usage";

    /// An error with its stable code and what to do about it.
    pub fn new(code: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint,
        }
    }

    /// What the user typed wrong.
    pub fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self::new(Self::USAGE, message, hint)
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What failed.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether it has this code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// The other side answered, and said no.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        ["agent.refused", "attach.refused"].contains(&self.code.as_str())
    }

    /// The server went away.
    #[must_use]
    pub fn gone() -> Self {
        Self::new(
            "attach.gone",
            "the server is gone",
            Some("what was said is in its store; start it again, and go on with --continue".into()),
        )
    }
}

impl From<AgentError> for ClientError {
    fn from(error: AgentError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
