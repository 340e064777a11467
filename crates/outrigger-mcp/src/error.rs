//! Errors of MCP servers. The text of an error is what the model and the user read.

use std::time::Duration;

use outrigger_protocol::diagnose::Diagnose;

/// Why a server could not be started, or a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its configuration entry is invalid.
    #[error("MCP server {server}: {reason}")]
    Config {
        /// Server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// Starting it is currently not allowed.
    #[error("MCP server {server} is not started: {reason}")]
    NotStarted {
        /// Server.
        server: String,
        /// The reason.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// Its process could not be started, or its URL could not be reached.
    #[error("MCP server {server} could not be started: {reason}")]
    Start {
        /// Server.
        server: String,
        /// The system's error.
        reason: String,
    },
    /// It was not ready in time; includes the start, the first exchange and the list of tools.
    #[error("MCP server {server} was not ready within {ms} ms{heard}")]
    StartTimeout {
        /// Server.
        server: String,
        /// The timeout.
        ms: u128,
        /// Its output instead; empty, or `: ` and the text.
        heard: String,
    },
    /// It ended, or was ended because it sent too much.
    #[error("MCP server {server} {cause}")]
    Closed {
        /// Server.
        server: String,
        /// The cause, as the rest of the sentence.
        cause: String,
    },
    /// A remote server has dropped the session; the next call starts another.
    #[error("MCP server {server} has ended the session")]
    SessionGone {
        /// Server.
        server: String,
    },
    /// It did not answer in time.
    #[error("MCP server {server} did not answer {what} within {} ms", .after.as_millis())]
    Timeout {
        /// Server.
        server: String,
        /// The request.
        what: String,
        /// The time since the call or its last progress report.
        after: Duration,
    },
    /// The server answered with an error.
    #[error("MCP server {server}: {message} ({code})")]
    Refused {
        /// Server.
        server: String,
        /// JSON-RPC code.
        code: i64,
        /// The message.
        message: String,
    },
    /// Its response violates the protocol.
    #[error("MCP server {server} gave an answer that cannot be used: {reason}")]
    Answer {
        /// Server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// A remote server requires a login.
    #[error("MCP server {server} wants authentication (HTTP {status})")]
    NeedsAuth {
        /// Server.
        server: String,
        /// 401 or 403.
        status: u16,
    },
    /// A remote server requires a login with a client that was registered by hand.
    #[error(
        "MCP server {server} wants a client that is registered there; it registers none by itself"
    )]
    NeedsClientRegistration {
        /// Server.
        server: String,
    },
    /// A remote server requires a login with more rights than the last one.
    #[error("MCP server {server} wants a login with more rights: {scope}")]
    NeedsScope {
        /// Server.
        server: String,
        /// The required scope.
        scope: String,
    },
    /// A remote server refuses a token that was requested with the required scope.
    #[error("MCP server {server} refuses this, although the login asked for {scope}")]
    ScopeRefused {
        /// Server.
        server: String,
        /// The required scope.
        scope: String,
    },
    /// A login failed.
    #[error("MCP server {server}: the login failed: {reason}")]
    Login {
        /// Server.
        server: String,
        /// The reason.
        reason: String,
    },
    /// There is no server of that name.
    #[error("MCP server not found: {server}")]
    Unknown {
        /// The name.
        server: String,
    },
    /// The server does not support logins.
    #[error("MCP server {server} does not support OAuth")]
    NoOAuth {
        /// Server.
        server: String,
    },
    /// A remote server cannot be connected to.
    #[error("cannot reach MCP server {server} at {host}: {reason}")]
    Unreachable {
        /// Server.
        server: String,
        /// Host of its URL.
        host: String,
        /// The cause.
        reason: String,
    },
    /// A remote server responded with an HTTP error, or a request was interrupted.
    #[error("MCP server {server}: {reason}")]
    Http {
        /// Server.
        server: String,
        /// The reason.
        reason: String,
    },
}

impl Diagnose for McpError {
    fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "mcp.config",
            Self::NotStarted { .. } => "mcp.not_started",
            Self::Start { .. } => "mcp.start",
            Self::StartTimeout { .. } => "mcp.start_timeout",
            Self::Closed { .. } | Self::SessionGone { .. } => "mcp.closed",
            Self::Timeout { .. } => "mcp.timeout",
            Self::Refused { .. } => "mcp.refused",
            Self::Answer { .. } => "mcp.answer",
            Self::NeedsAuth { .. } => "mcp.needs_auth",
            Self::NeedsClientRegistration { .. } => "mcp.needs_client_registration",
            Self::NeedsScope { .. } => "mcp.needs_scope",
            Self::ScopeRefused { .. } => "mcp.scope_refused",
            Self::Login { .. } => "mcp.login",
            Self::Unknown { .. } => "mcp.unknown",
            Self::NoOAuth { .. } => "mcp.no_oauth",
            Self::Unreachable { .. } => "mcp.unreachable",
            Self::Http { .. } => "mcp.http",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Config { server, .. } => Some(format!(
                "correct `mcp.{server}` in opencode.json, or set its `enabled` to false"
            )),
            Self::NotStarted { hint, .. } => Some(hint.clone()),
            Self::Start { server, .. } => {
                Some(format!("check `mcp.{server}.command` in opencode.json"))
            }
            Self::StartTimeout { server, .. } => Some(format!(
                "give it more time with `mcp.{server}.timeout` (milliseconds) in opencode.json"
            )),
            Self::NeedsAuth { server, .. } => Some(format!(
                "log in with `outrigger mcp auth {server}`, or put a token into `mcp.{server}.headers` in opencode.json"
            )),
            Self::NeedsScope { server, .. } => Some(format!(
                "log in again with `outrigger mcp auth {server}`, which asks for them"
            )),
            Self::ScopeRefused { .. } => Some(
                "another login would ask for the same; those who run the server grant the right"
                    .to_owned(),
            ),
            Self::NeedsClientRegistration { server } => Some(format!(
                "register a client there and put its id into `mcp.{server}.oauth.clientId` in opencode.json"
            )),
            Self::Unreachable { server, .. } => Some(format!(
                "check the network and `mcp.{server}.url` in opencode.json, or set its `enabled` to false"
            )),
            Self::Unknown { .. } => {
                Some("`outrigger mcp list` shows those that there are".to_owned())
            }
            Self::NoOAuth { server } => Some(format!(
                "it must be a remote server whose `mcp.{server}.oauth` is not false and without an Authorization header"
            )),
            Self::Closed { .. } => Some("OUTRIGGER_LOG=info shows what it prints".to_owned()),
            _ => None,
        }
    }
}
