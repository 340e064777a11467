//! What can go wrong with an MCP server. The text of an error is what the model and the user read.

use std::time::Duration;

/// Why a server could not be started, or a call did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its entry in the configuration cannot be used.
    #[error("MCP server {server}: {reason}")]
    Config {
        /// Server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// It must not be started as things are.
    #[error("MCP server {server} is not started: {reason}")]
    NotStarted {
        /// Server.
        server: String,
        /// Why.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// Its process could not be started, or its address not be reached.
    #[error("MCP server {server} could not be started: {reason}")]
    Start {
        /// Server.
        server: String,
        /// What the system said.
        reason: String,
    },
    /// It was not up in time: start, first exchange and list of tools together.
    #[error("MCP server {server} was not ready within {ms} ms{heard}")]
    StartTimeout {
        /// Server.
        server: String,
        /// The time it had.
        ms: u128,
        /// What it said instead; empty, or `: ` and the text.
        heard: String,
    },
    /// It ended, or was ended because it flooded us.
    #[error("MCP server {server} {cause}")]
    Closed {
        /// Server.
        server: String,
        /// How, as the rest of the sentence.
        cause: String,
    },
    /// A remote server has forgotten the session; the next call begins another.
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
        /// The time it had since the call or its last report of progress.
        after: Duration,
    },
    /// It answered with an error.
    #[error("MCP server {server}: {message} ({code})")]
    Refused {
        /// Server.
        server: String,
        /// JSON-RPC code.
        code: i64,
        /// Its text.
        message: String,
    },
    /// It answered something that the protocol does not know.
    #[error("MCP server {server} gave an answer that cannot be used: {reason}")]
    Answer {
        /// Server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// A remote server wants a login.
    #[error("MCP server {server} wants authentication (HTTP {status})")]
    NeedsAuth {
        /// Server.
        server: String,
        /// 401 or 403.
        status: u16,
    },
    /// A remote server wants a login with a client that was registered by hand.
    #[error(
        "MCP server {server} wants a client that is registered there; it registers none by itself"
    )]
    NeedsClientRegistration {
        /// Server.
        server: String,
    },
    /// A remote server wants a login with more rights than the last one has.
    #[error("MCP server {server} wants a login with more rights: {scope}")]
    NeedsScope {
        /// Server.
        server: String,
        /// What it wants the token to be good for.
        scope: String,
    },
    /// A remote server refuses a token that was asked for with the rights that it wants.
    #[error("MCP server {server} refuses this, although the login asked for {scope}")]
    ScopeRefused {
        /// Server.
        server: String,
        /// What it wants the token to be good for.
        scope: String,
    },
    /// A login did not complete.
    #[error("MCP server {server}: the login failed: {reason}")]
    Login {
        /// Server.
        server: String,
        /// What happened.
        reason: String,
    },
    /// There is no server of that name.
    #[error("MCP server not found: {server}")]
    Unknown {
        /// The name.
        server: String,
    },
    /// One cannot log in there.
    #[error("MCP server {server} does not support OAuth")]
    NoOAuth {
        /// Server.
        server: String,
    },
    /// No connection to a remote server.
    #[error("MCP server {server} cannot be reached at {host}: {reason}")]
    Unreachable {
        /// Server.
        server: String,
        /// Host of its address.
        host: String,
        /// The cause.
        reason: String,
    },
    /// A remote server answered with an HTTP error, or a request was cut off.
    #[error("MCP server {server}: {reason}")]
    Http {
        /// Server.
        server: String,
        /// What happened.
        reason: String,
    },
}

impl McpError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
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

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
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
