//! What can go wrong in the agent.

use outrigger_permissions::TrustError;
use outrigger_protocol::message::NamedError;

/// An error of the agent, with a stable code and, where there is one, a hint what to do.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] outrigger_config::ConfigError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] outrigger_store::StoreError),
    /// A process cannot be started at all.
    #[error(transparent)]
    Sandbox(#[from] outrigger_sandbox::SandboxError),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] outrigger_models::ModelError),
    /// A prompt is stored, and its model cannot be asked.
    #[error(transparent)]
    Unaskable(outrigger_models::ModelError),
    /// An MCP server.
    #[error(transparent)]
    Mcp(#[from] outrigger_mcp::McpError),
    /// The credentials cannot be used.
    #[error(transparent)]
    Credential(#[from] outrigger_models::CredentialError),
    /// There is no such session.
    #[error("there is no session `{0}`")]
    NoSession(String),
    /// There is no such agent.
    #[error("there is no agent `{name}`; there are: {}", known.join(", "))]
    NoAgent {
        /// What was asked for.
        name: String,
        /// What could have been.
        known: Vec<String>,
    },
    /// There is no such command.
    #[error("there is no command `{name}`; there are: {}", known.join(", "))]
    NoCommand {
        /// What was asked for.
        name: String,
        /// What could have been.
        known: Vec<String>,
    },
    /// Another process runs a turn in this session.
    #[error("session `{0}` is at work in another process")]
    Busy(String),
    /// A turn of this process runs in this session, and what was asked for needs it to be at rest.
    #[error("session `{0}` is at work; wait for it or abort it first")]
    Working(String),
    /// There is no such message, or no such part of it.
    #[error("there is no `{what}` in session `{session}`")]
    NoMessage {
        /// Message or part.
        what: String,
        /// Session.
        session: String,
    },
    /// A part that was sent does not belong where it was sent.
    #[error("the part in the request is not the one that its address names: {0}")]
    Part(String),
    /// The schema that a prompt wants its answer to have (`format`) is of no use.
    #[error("the prompt's `format` cannot be kept to: {0}")]
    BadFormat(String),
    /// Files are not what the session left, so putting them back would destroy someone's work.
    #[error(
        "nothing was taken back: {} changed since by someone else: {}",
        if files.len() == 1 { "a file was" } else { "files were" }, files.join(", ")
    )]
    Conflict {
        /// Which, relative to the project's root.
        files: Vec<String>,
    },
    /// A plugin would put back a file that makes something run later.
    #[error("a plugin does not put back {file}: {runs}")]
    RunsLater {
        /// Relative to the project's root.
        file: String,
        /// What runs it.
        runs: &'static str,
    },
    /// A tree of the project's files cannot be made or put back.
    #[error(transparent)]
    Snapshot(#[from] outrigger_workspace::snapshot::SnapshotError),
    /// A plugin's prompt waited for the turn that it is part of.
    #[error(
        "session `{0}` is at work, and a prompt that waits for its answer would wait for itself"
    )]
    WaitsForItself(String),
    /// A limit of the user's is reached. The text says which.
    #[error("{0}")]
    Budget(String),
    /// A plugin wants what the user has to grant it. The text says who, what, and the line that grants it.
    #[error("{0}")]
    NotGranted(String),
    /// A compaction was asked for and there is nothing that it could summarise.
    #[error(
        "session `{0}` has nothing to compact: there is no message since its beginning or its last summary"
    )]
    NothingToCompact(String),
    /// The task of a turn ended without an outcome.
    #[error("the turn was lost: {0}")]
    Lost(String),
    /// Something else is in the place of the folder that an agent works in.
    #[error(
        "{0} is not the folder any more that this agent was started in: a link or another folder is in its place"
    )]
    Moved(String),
    /// A file that was to go with the prompt.
    #[error("cannot attach {path}: {reason}")]
    Attachment {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A folder or file of our own.
    #[error("cannot use {path}: {reason}")]
    Folder {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// Plugins did not load, and they have to (`--strict-plugins`).
    #[error(
        "{} of the plugins did not load, and strict_plugins makes that an error: {}",
        failed.len(), failed.join("; ")
    )]
    StrictPlugins {
        /// Each with its cause.
        failed: Vec<String>,
    },
    /// Settings of the project changed while something in a sandbox ran.
    #[error(
        "settings of this project changed while Outrigger ran here, and not by its tools: {}",
        files.join(", ")
    )]
    SettingsChanged {
        /// Each with what became of it.
        files: Vec<String>,
    },
    /// What plugins are trusted as cannot be read or written.
    #[error(transparent)]
    Trust(#[from] outrigger_plugins::PluginError),
    /// The bundled tools cannot be registered.
    #[error("the bundled tools cannot be used: {0}")]
    Tools(String),
    /// The stored run of a turn does not yield the effects that were recorded.
    #[error(
        "turn `{turn}` replays differently at step {n}: the log has effects {recorded}, the replay {replayed}"
    )]
    Replay {
        /// Turn.
        turn: String,
        /// Step.
        n: u64,
        /// Digest in the log.
        recorded: String,
        /// Digest now.
        replayed: String,
    },
}

impl From<TrustError> for AgentError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Config(error) => Self::Config(error),
            TrustError::Sandbox(error) => Self::Sandbox(error),
            TrustError::Plugins(error) => Self::Trust(error.into()),
            TrustError::Folder { path, reason } => Self::Folder { path, reason },
            TrustError::SettingsChanged { files } => Self::SettingsChanged { files },
        }
    }
}

impl From<outrigger_session_state::turns::Retired> for AgentError {
    fn from(retired: outrigger_session_state::turns::Retired) -> Self {
        Self::Lost(retired.to_string())
    }
}

impl AgentError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(e) => e.code(),
            Self::Store(e) => e.code(),
            Self::Sandbox(e) => e.code(),
            Self::Model(e) | Self::Unaskable(e) => e.code(),
            Self::Mcp(e) => e.code(),
            Self::Credential(e) => e.code(),
            Self::NoSession(_) => "agent.no_session",
            Self::NoAgent { .. } => "agent.no_agent",
            Self::NoCommand { .. } => "agent.no_command",
            Self::Busy(_) => "agent.busy",
            Self::Working(_) => "agent.working",
            Self::Conflict { .. } => "agent.conflict",
            Self::RunsLater { .. } => "agent.runs_later",
            Self::Snapshot(_) => "agent.snapshot",
            Self::NoMessage { .. } => "agent.no_message",
            Self::Part(_) => "agent.part",
            Self::BadFormat(_) => "agent.bad_format",
            Self::WaitsForItself(_) => "agent.waits_for_itself",
            Self::Budget(_) => "agent.budget",
            Self::NotGranted(_) => "plugin.not_granted",
            Self::NothingToCompact(_) => "agent.nothing_to_compact",
            Self::Lost(_) => "agent.lost",
            Self::Moved(_) => "agent.moved",
            Self::Attachment { .. } => "agent.attachment",
            Self::StrictPlugins { .. } => "plugin.strict",
            Self::SettingsChanged { .. } => "config.changed",
            Self::Trust(e) => e.code(),
            Self::Folder { .. } => "agent.folder",
            Self::Tools(_) => "agent.tools",
            Self::Replay { .. } => "agent.replay",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(e) => e.hint(),
            Self::Store(e) => e.hint(),
            Self::Sandbox(e) => e.hint(),
            Self::Model(e) | Self::Unaskable(e) => e.hint(),
            Self::Mcp(e) => e.hint(),
            Self::Credential(e) => e.hint(),
            Self::NoSession(_) => {
                Some("`outrigger session list` shows the sessions of this project".into())
            }
            Self::Busy(_) => Some("wait for it, or start a new session without -c and -s".into()),
            Self::Conflict { .. } => Some(
                "put these files in safety or undo what was done to them, or send `force: true`"
                    .into(),
            ),
            Self::RunsLater { .. } => Some("take it back yourself, from a terminal or client".into()),
            Self::StrictPlugins { .. } => Some("`outrigger plugin list` says more; mend or disable them, or leave out --strict-plugins (setting strict_plugins)".into()),
            Self::SettingsChanged { .. } => Some("a command or a plugin may have written them: look at them and undo what you do not want, then `outrigger config allow`".into()),
            Self::Trust(e) => e.hint(),
            Self::WaitsForItself(_) => Some("send it with prompt_async, or with noReply".into()),
            Self::NothingToCompact(_) => Some("send a prompt first".into()),
            _ => None,
        }
    }

    /// As clients and events carry it.
    #[must_use]
    pub fn to_named(&self) -> NamedError {
        match self {
            Self::Model(e) | Self::Unaskable(e) => e.to_named(),
            Self::Conflict { files } => NamedError {
                name: "RevertConflictError".into(),
                data: serde_json::json!({ "message": self.to_string(), "code": self.code(), "files": files }),
            },
            other => NamedError {
                name: "UnknownError".into(),
                data: serde_json::json!({ "message": other.to_string(), "code": other.code() }),
            },
        }
    }
}
