//! Errors of reading or changing trust.

use outrigger_config::ConfigError;
use outrigger_plugin_trust::TrustError as PluginTrustError;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::SandboxError;

/// Why the settings of a folder cannot be used or trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The configuration is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A task of this process was stopped.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The trust store of plugins cannot be read or written.
    #[error(transparent)]
    Plugins(#[from] PluginTrustError),
    /// A folder or file of Outrigger cannot be used.
    #[error("cannot use {path}: {reason}")]
    Folder {
        /// Its path.
        path: String,
        /// Reason.
        reason: String,
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
}

impl Diagnose for TrustError {
    fn code(&self) -> &'static str {
        match self {
            Self::Config(e) => e.code(),
            Self::Sandbox(e) => e.code(),
            Self::Plugins(e) => e.code(),
            Self::Folder { .. } => "agent.folder",
            Self::SettingsChanged { .. } => "config.changed",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Config(e) => e.hint(),
            Self::Sandbox(e) => e.hint(),
            Self::Plugins(e) => e.hint(),
            Self::Folder { .. } => None,
            Self::SettingsChanged { .. } => Some(
                "a command or a plugin may have written them: review them, undo what you do not want, then run \
                 `outrigger config allow`"
                    .into(),
            ),
        }
    }
}
