//! Errors of the agent.

use outrigger_permissions::TrustError;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::NamedError;

/// An error of the agent, with a stable code and, for most variants, a hint.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration is unusable.
    #[error(transparent)]
    Config(#[from] outrigger_config::ConfigError),
    /// The store is unusable.
    #[error(transparent)]
    Store(#[from] outrigger_store::StoreError),
    /// Processes cannot be started.
    #[error(transparent)]
    Sandbox(#[from] outrigger_sandbox::SandboxError),
    /// The model is unusable.
    #[error(transparent)]
    Model(#[from] outrigger_models::ModelError),
    /// The prompt is stored, but its model is unavailable.
    #[error(transparent)]
    Unaskable(outrigger_models::ModelError),
    /// An MCP server.
    #[error(transparent)]
    Mcp(#[from] outrigger_mcp::McpError),
    /// The credentials are unusable.
    #[error(transparent)]
    Credential(#[from] outrigger_models::CredentialError),
    /// The session does not exist.
    #[error("there is no session `{0}`")]
    NoSession(String),
    /// The agent does not exist.
    #[error("there is no agent `{name}`; there are: {}", known.join(", "))]
    NoAgent {
        /// What was asked for.
        name: String,
        /// Names of the available agents.
        known: Vec<String>,
    },
    /// The command does not exist.
    #[error("there is no command `{name}`; there are: {}", known.join(", "))]
    NoCommand {
        /// What was asked for.
        name: String,
        /// Names of the available commands.
        known: Vec<String>,
    },
    /// Another process runs a turn in this session.
    #[error("session `{0}` is in use by another process")]
    Busy(String),
    /// A turn of this process runs in this session, and the request needs an idle session.
    #[error("session `{0}` is busy; wait for it or abort it first")]
    Working(String),
    /// The message, or the part of it, does not exist.
    #[error("there is no `{what}` in session `{session}`")]
    NoMessage {
        /// Id of the message or part.
        what: String,
        /// Id of the session.
        session: String,
    },
    /// A part was sent to a message that it does not belong to.
    #[error("the part in the body does not match the address: {0}")]
    Part(String),
    /// The schema in a prompt's `format` is invalid.
    #[error("cannot enforce the prompt's `format`: {0}")]
    BadFormat(String),
    /// Files changed since the session wrote them, so restoring them would destroy someone's work.
    #[error(
        "nothing was reverted: {} changed since by someone else: {}",
        if files.len() == 1 { "a file was" } else { "files were" }, files.join(", ")
    )]
    Conflict {
        /// Changed files, relative to the project's root.
        files: Vec<String>,
    },
    /// A plugin would restore a file that makes something run later.
    #[error("a plugin cannot restore {file}: {runs}")]
    RunsLater {
        /// Path relative to the project's root.
        file: String,
        /// Program that runs the file.
        runs: &'static str,
    },
    /// A revert would restore a file that makes something run later, in messages that a plugin is a cause of.
    #[error(
        "nothing was reverted: it would change {file}, which runs later ({runs}), and the plugin {plugin} is a cause of these \
         messages"
    )]
    PluginCaused {
        /// The plugin.
        plugin: String,
        /// Path relative to the project's root.
        file: String,
        /// Program that runs the file.
        runs: &'static str,
    },
    /// A snapshot of the project's files cannot be created or restored.
    #[error(transparent)]
    Snapshot(#[from] outrigger_workspace::snapshot::SnapshotError),
    /// A plugin's prompt waited for the turn that it is part of.
    #[error(
        "session `{0}` is busy, and a prompt of its own turn that waits for the answer would wait for itself"
    )]
    WaitsForItself(String),
    /// A user limit is reached. The text names it.
    #[error("{0}")]
    Budget(String),
    /// A rule or the user does not allow what a prompt needs. The text names it.
    #[error("{0}")]
    Refused(String),
    /// A plugin needs a grant. The text names the plugin, the action, and the setting that grants it.
    #[error("{0}")]
    NotGranted(String),
    /// A compaction was requested, but there is nothing to summarise.
    #[error(
        "session `{0}` has nothing to compact: there is no message since its beginning or its last summary"
    )]
    NothingToCompact(String),
    /// The task of a turn ended without an outcome.
    #[error("the turn was lost: {0}")]
    Lost(String),
    /// The folder that the agent works in was replaced by something else.
    #[error("{0} was replaced by a link or another folder since this agent started")]
    Moved(String),
    /// A file attached to the prompt cannot be used.
    #[error("cannot attach {path}: {reason}")]
    Attachment {
        /// Path of the file.
        path: String,
        /// Reason.
        reason: String,
    },
    /// A file or folder of Outrigger's own cannot be used.
    #[error("cannot use {path}: {reason}")]
    Folder {
        /// Its path.
        path: String,
        /// Reason.
        reason: String,
    },
    /// Required plugins did not load (`--strict-plugins`).
    #[error(
        "{} of the plugins did not load, and strict_plugins makes that an error: {}",
        failed.len(), failed.join("; ")
    )]
    StrictPlugins {
        /// The plugins with their causes.
        failed: Vec<String>,
    },
    /// Project settings changed while something in a sandbox ran.
    #[error(
        "settings of this project changed while Outrigger ran here, and not by its tools: {}",
        files.join(", ")
    )]
    SettingsChanged {
        /// The files with their changes.
        files: Vec<String>,
    },
    /// The trust store of plugins cannot be read or written.
    #[error(transparent)]
    Trust(#[from] outrigger_plugins::PluginError),
    /// The bundled tools cannot be registered.
    #[error("the bundled tools cannot be used: {0}")]
    Tools(String),
    /// Replaying a stored turn yields different effects from those recorded.
    #[error(
        "turn `{turn}` replays differently at step {n}: the log has effects {recorded}, the replay {replayed}"
    )]
    Replay {
        /// Id of the turn.
        turn: String,
        /// Number of the step.
        n: u64,
        /// Digest in the log.
        recorded: String,
        /// Digest of the replay.
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

impl Diagnose for AgentError {
    fn code(&self) -> &'static str {
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
            Self::RunsLater { .. } | Self::PluginCaused { .. } => "agent.runs_later",
            Self::Snapshot(_) => "agent.snapshot",
            Self::NoMessage { .. } => "agent.no_message",
            Self::Part(_) => "agent.part",
            Self::BadFormat(_) => "agent.bad_format",
            Self::WaitsForItself(_) => "agent.waits_for_itself",
            Self::Budget(_) => "agent.budget",
            Self::Refused(_) => "agent.refused",
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

    fn hint(&self) -> Option<String> {
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
                "save these files or undo the changes to them, or send `force: true`"
                    .into(),
            ),
            Self::RunsLater { .. } => Some("revert it yourself, from a terminal or client".into()),
            Self::PluginCaused { .. } => Some("check the earlier content of that file, then send `force: true`".into()),
            Self::StrictPlugins { .. } => Some("`outrigger plugin list` shows why; fix or disable them, or omit --strict-plugins (setting strict_plugins)".into()),
            Self::SettingsChanged { .. } => Some("a command or a plugin may have written them: review them, undo what you do not want, then run `outrigger config allow`".into()),
            Self::Trust(e) => e.hint(),
            Self::WaitsForItself(_) => Some("send it with prompt_async, or with noReply".into()),
            Self::NothingToCompact(_) => Some("send a prompt first".into()),
            _ => None,
        }
    }
}

impl AgentError {
    /// Returns the error in the form that clients and events use.
    #[must_use]
    pub fn to_named(&self) -> NamedError {
        match self {
            Self::Model(e) | Self::Unaskable(e) => e.to_named(),
            Self::Conflict { files } => NamedError {
                name: "RevertConflictError".into(),
                data: serde_json::json!({ "message": self.to_string(), "code": self.code(), "files": files }),
            },
            Self::PluginCaused { file, .. } => NamedError {
                name: "RevertConflictError".into(),
                data: serde_json::json!({ "message": self.to_string(), "code": self.code(), "files": [file] }),
            },
            other => NamedError {
                name: "UnknownError".into(),
                data: serde_json::json!({ "message": other.to_string(), "code": other.code() }),
            },
        }
    }
}
