//! What can go wrong with one server. Nothing here fails a call of a tool: it is logged, and listed by `status`.

use std::time::Duration;

/// Why a server is of no use (any more).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LspError {
    /// Its process did not start.
    #[error("language server {server} did not start: {reason}")]
    Start {
        /// Which.
        server: String,
        /// What the system said.
        reason: String,
    },
    /// It answered nothing in time.
    #[error("language server {server} did not answer {method} within {} ms", after.as_millis())]
    Timeout {
        /// Which.
        server: String,
        /// The request.
        method: String,
        /// The limit.
        after: Duration,
    },
    /// It answered with an error.
    #[error("language server {server} refused {method}: {message}")]
    Refused {
        /// Which.
        server: String,
        /// The request.
        method: String,
        /// What it said.
        message: String,
    },
    /// Its process has ended, or what it wrote cannot be read.
    #[error("language server {server} is gone: {cause}")]
    Gone {
        /// Which.
        server: String,
        /// Why.
        cause: String,
    },
}

impl LspError {
    /// A stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "lsp.start",
            Self::Timeout { .. } => "lsp.timeout",
            Self::Refused { .. } => "lsp.refused",
            Self::Gone { .. } => "lsp.gone",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Start { .. } => {
                Some("check `command` of the server under `lsp` in opencode.json")
            }
            Self::Timeout { .. } | Self::Gone { .. } => Some(
                "run the server by hand, or switch it off: \"lsp\": {\"NAME\": {\"disabled\": true}}",
            ),
            Self::Refused { .. } => None,
        }
    }
}
