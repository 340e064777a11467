//! Errors of a plugin process.

use std::io;
use std::path::PathBuf;

use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::rpc::{Enter, HandlerRef, PROTOCOL_VERSION};
use outrigger_sandbox::SandboxError;

const SETUP: &str =
    "run `outrigger plugin setup` to install Bun (it fetches it from npm into the data folder)";

/// How a channel ended, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Exit code or signal of the process; `None` if it was not known in time.
    pub status: Option<String>,
    /// Its last lines on standard error, oldest first.
    pub stderr: Vec<String>,
    /// Why the host closed it, if it did (a frame over the limit, say).
    pub reason: Option<String>,
}

/// A plugin process could not be started, or a call to it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsError {
    /// Neither Bun nor Node was found.
    #[error("no JavaScript runtime found (looked for: {})", .searched.join(", "))]
    RuntimeMissing {
        /// Paths that were searched.
        searched: Vec<String>,
    },
    /// A runtime is named in the settings or the environment, and does not exist.
    #[error("the JavaScript runtime {} named by {named_by} does not exist", path.display())]
    RuntimeNotThere {
        /// The named path.
        path: PathBuf,
        /// Setting or variable that names it.
        named_by: &'static str,
    },
    /// Node is older than 20.
    #[error("Node {version} at {} is too old, 20 or later is needed", path.display())]
    RuntimeTooOld {
        /// Its path.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// The version of the runtime cannot be determined.
    #[error("{} --version failed: {reason}", path.display())]
    RuntimeVersion {
        /// Its path.
        path: PathBuf,
        /// Reason.
        reason: String,
    },
    /// The host script could not be written into the process's private folder.
    #[error("cannot write the host script to {}: {source}", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The process could not be started.
    #[error("cannot start the plugin process {name}: {source}")]
    Spawn {
        /// Name of the process.
        name: String,
        /// Error of the sandbox.
        source: SandboxError,
    },
    /// No hello in time.
    #[error("the plugin process {name} said nothing within {ms} ms of its start{}", tail(.stderr))]
    HelloTimeout {
        /// Name of the process.
        name: String,
        /// The deadline in milliseconds.
        ms: u64,
        /// Its last lines on standard error.
        stderr: Vec<String>,
    },
    /// The host script uses another major version of the protocol.
    #[error("the plugin process speaks protocol {theirs}, this host speaks {PROTOCOL_VERSION}")]
    ProtocolMismatch {
        /// Its version.
        theirs: String,
    },
    /// A frame is larger than [`outrigger_protocol::rpc::MAX_FRAME`].
    #[error("a frame of {size} bytes is over the limit of {max}")]
    FrameTooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Data on the channel is not a message.
    #[error("the plugin process sent something that is not a JSON-RPC message: {reason}")]
    BadFrame {
        /// Error of the parser.
        reason: String,
    },
    /// The process, or its channel, is closed.
    #[error("the plugin process {name} is gone{}", ending(.closed))]
    Closed {
        /// Name of the process.
        name: String,
        /// How it ended.
        closed: Closed,
    },
    /// No answer in time. The process may still be busy with it: only killing the process frees it.
    #[error("{method} was not answered within {ms} ms{}", culprit(.handler, .entered))]
    CallTimeout {
        /// Method.
        method: &'static str,
        /// The deadline in milliseconds.
        ms: u64,
        /// The awaited handler, for `hook.run`.
        handler: Option<HandlerRef>,
        /// The code that the process had entered last and not left; it may be another plugin's (see
        /// [`crate::JsProcess::entered`]).
        entered: Option<Enter>,
    },
    /// The plugin's code threw, or refused.
    #[error("{message}")]
    Plugin {
        /// JSON-RPC code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The caller no longer wanted the answer.
    #[error("{method} was cancelled")]
    Cancelled {
        /// Method.
        method: &'static str,
    },
    /// The answer does not have the method's type.
    #[error("cannot read the answer to {method}: {reason}")]
    BadAnswer {
        /// Method.
        method: &'static str,
        /// Error of the parser.
        reason: String,
    },
    /// Too much data is waiting to be read by the process; nothing more is accepted.
    #[error("{bytes} bytes are waiting for the plugin process {name} to read them")]
    Backlog {
        /// Name of the process.
        name: String,
        /// Bytes waiting.
        bytes: usize,
    },
}

fn tail(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("; its last output: {}", lines.join(" | "))
}

fn ending(closed: &Closed) -> String {
    let status = closed
        .status
        .as_ref()
        .map(|status| format!(" ({status})"))
        .unwrap_or_default();
    let reason = closed
        .reason
        .as_ref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    format!("{status}{reason}{}", tail(&closed.stderr))
}

fn culprit(handler: &Option<HandlerRef>, entered: &Option<Enter>) -> String {
    match (handler, entered) {
        (_, Some(enter)) => format!(", in plugin {} ({})", enter.plugin, enter.what),
        (Some(handler), None) => format!(", waiting for plugin {}", handler.plugin),
        (None, None) => String::new(),
    }
}

impl Diagnose for JsError {
    fn code(&self) -> &'static str {
        match self {
            Self::RuntimeMissing { .. } => "js.runtime_missing",
            Self::RuntimeNotThere { .. } => "js.runtime_not_there",
            Self::RuntimeTooOld { .. } => "js.runtime_too_old",
            Self::RuntimeVersion { .. } => "js.runtime_version",
            Self::Script { .. } => "js.script",
            Self::Spawn { .. } => "js.spawn",
            Self::HelloTimeout { .. } => "js.hello_timeout",
            Self::ProtocolMismatch { .. } => "js.protocol_mismatch",
            Self::FrameTooLarge { .. } => "js.frame_too_large",
            Self::BadFrame { .. } => "js.bad_frame",
            Self::Closed { .. } => "js.closed",
            Self::CallTimeout { .. } => "js.timeout",
            Self::Plugin { .. } => "js.plugin",
            Self::Cancelled { .. } => "js.cancelled",
            Self::BadAnswer { .. } => "js.bad_answer",
            Self::Backlog { .. } => "js.backlog",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::RuntimeMissing { .. } | Self::RuntimeTooOld { .. } => Some(SETUP.to_owned()),
            Self::RuntimeNotThere { named_by, .. } => {
                Some(format!("correct {named_by}, or remove it and {SETUP}"))
            }
            Self::RuntimeVersion { path, .. } => {
                Some(format!("check that {} runs, or {SETUP}", path.display()))
            }
            Self::Script { path, .. } => {
                Some(format!("make {} writable for this user", path.display()))
            }
            Self::Spawn { source, .. } => source.hint(),
            Self::ProtocolMismatch { .. } => {
                Some("the host script belongs to another version of Outrigger".to_owned())
            }
            _ => None,
        }
    }
}

impl JsError {
    /// Returns whether the process is unusable: it exited, hung or violated the protocol.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::Plugin { .. }
                | Self::Cancelled { .. }
                | Self::BadAnswer { .. }
                | Self::Backlog { .. }
        ) && !matches!(self, Self::FrameTooLarge { .. })
    }
}
