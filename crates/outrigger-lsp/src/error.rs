//! Errors of a server. They do not fail tool calls: they are logged, and listed by `status`.

use std::time::Duration;

use outrigger_protocol::diagnose::Diagnose;

/// Why a server is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LspError {
    /// Its process did not start.
    #[error("language server {server} did not start: {reason}")]
    Start {
        /// The server.
        server: String,
        /// The system's error.
        reason: String,
    },
    /// It did not respond in time.
    #[error("language server {server} did not answer {method} within {} ms", after.as_millis())]
    Timeout {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// The limit.
        after: Duration,
    },
    /// It responded with an error.
    #[error("language server {server} refused {method}: {message}")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// Its message.
        message: String,
    },
    /// Its process has ended, or its output cannot be read.
    #[error("language server {server} is gone: {cause}")]
    Gone {
        /// The server.
        server: String,
        /// The cause.
        cause: String,
    },
}

impl Diagnose for LspError {
    fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "lsp.start",
            Self::Timeout { .. } => "lsp.timeout",
            Self::Refused { .. } => "lsp.refused",
            Self::Gone { .. } => "lsp.gone",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Start { .. } => "check `command` of the server under `lsp` in opencode.json",
            Self::Timeout { .. } | Self::Gone { .. } => {
                "run the server by hand, or switch it off: \"lsp\": {\"NAME\": {\"disabled\": true}}"
            }
            Self::Refused { .. } => return None,
        };
        Some(text.to_owned())
    }
}
