//! Errors of plugin trust.

use std::path::PathBuf;

use outrigger_plugin_package::PackageError;
use outrigger_protocol::diagnose::Diagnose;

/// Why a plugin is not started in its current state, or why its trust cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be found or read.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Its signature does not meet the machine policy (C7).
    #[error("plugin {id} is not started: {problem}")]
    Signature {
        /// Id of the plugin.
        id: String,
        /// The problem, with its name.
        problem: String,
    },
    /// Its files differ from those that were trusted.
    #[error("plugin {id} is not started: it is not what was trusted ({what})")]
    Changed {
        /// Spec as declared.
        spec: String,
        /// Id of the plugin.
        id: String,
        /// Summary of the changes.
        what: String,
    },
    /// It was never approved.
    #[error("plugin {id} is not started: {reason}")]
    Untrusted {
        /// Spec as declared.
        spec: String,
        /// Id of the plugin.
        id: String,
        /// Why it is not trusted.
        reason: String,
        /// A review would help.
        review: bool,
    },
    /// It differs from the project's `outrigger.lock`.
    #[error("plugin {spec} does not match the hash pinned in {}", lock.display())]
    NotAsPinned {
        /// Spec as declared.
        spec: String,
        /// The file.
        lock: PathBuf,
    },
    /// It is world-writable (D3).
    #[error("plugin {spec} is not started: everybody may write to {}", path.display())]
    WorldWritable {
        /// Spec as declared.
        spec: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// Its files cannot be listed, so they cannot have been trusted.
    #[error("plugin {spec} is not started: its files cannot be inspected: {reason}")]
    Unreviewable {
        /// Spec as declared.
        spec: String,
        /// Reason.
        reason: String,
    },
    /// The trust file is unusable.
    #[error("cannot use {}: {message}", path.display())]
    TrustFile {
        /// Its path.
        path: PathBuf,
        /// What happened.
        message: String,
    },
}

impl Diagnose for TrustError {
    fn code(&self) -> &'static str {
        match self {
            Self::Package(error) => error.code(),
            Self::Signature { .. } => "plugin.signature",
            Self::Changed { .. } => "plugin.changed",
            Self::Untrusted { .. } => "plugin.untrusted",
            Self::NotAsPinned { .. } => "plugin.not_pinned",
            Self::WorldWritable { .. } => "plugin.world_writable",
            Self::Unreviewable { .. } => "plugin.unreviewable",
            Self::TrustFile { .. } => "plugin.trust_file",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Package(error) => return error.hint(),
            Self::Changed { id, .. }
            | Self::Untrusted {
                id, review: true, ..
            } => {
                return Some(format!(
                    "review it with `outrigger plugin review {id}` and trust it with `outrigger plugin review {id} --accept`"
                ));
            }
            Self::NotAsPinned { .. } => {
                "undo the change, or pin the current files with `outrigger plugin review --accept --pin`"
            }
            Self::WorldWritable { .. } => {
                "run `chmod o-w` on it; on file systems without permissions, set `trust.world_writable = true` in your own outrigger.toml"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}
