//! Why a plugin is not trusted.

use std::path::PathBuf;

use outrigger_plugin_package::PackageError;

/// Why a plugin is not started as it is, or why it cannot be said whether it is trusted.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be found or read.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Its signature is not what the policy of the machine asks for (C7).
    #[error("plugin {id} is not started: {problem}")]
    Signature {
        /// Which.
        id: String,
        /// What is wrong, with its name.
        problem: String,
    },
    /// Its files are not those that were trusted (issue 5, trust by content).
    #[error("plugin {id} is not started: it is not what was trusted ({what})")]
    Changed {
        /// As declared.
        spec: String,
        /// Name.
        id: String,
        /// What changed.
        what: String,
    },
    /// Nobody has said that it may be started.
    #[error("plugin {id} is not started: {reason}")]
    Untrusted {
        /// As declared.
        spec: String,
        /// Name.
        id: String,
        /// Why it is not trusted.
        reason: String,
        /// A review would help.
        review: bool,
    },
    /// The project's `outrigger.lock` says something else.
    #[error("plugin {spec} is not what {} says", lock.display())]
    NotAsPinned {
        /// As declared.
        spec: String,
        /// The file.
        lock: PathBuf,
    },
    /// Everybody on the machine may change it (D3).
    #[error("plugin {spec} is not started: everybody may write to {}", path.display())]
    WorldWritable {
        /// As declared.
        spec: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// Its files cannot be listed, so nobody can have trusted them.
    #[error("plugin {spec} is not started: its files cannot be looked at: {reason}")]
    Unreviewable {
        /// As declared.
        spec: String,
        /// Why.
        reason: String,
    },
    /// What says which plugins are trusted cannot be used.
    #[error("{} cannot be used: {message}", path.display())]
    TrustFile {
        /// Where.
        path: PathBuf,
        /// What happened.
        message: String,
    },
}

impl TrustError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
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

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Package(error) => return error.hint(),
            Self::Changed { id, .. }
            | Self::Untrusted {
                id, review: true, ..
            } => {
                return Some(format!(
                    "look at it with `outrigger plugin review {id}` and trust it with `outrigger plugin review {id} --accept`"
                ));
            }
            Self::NotAsPinned { .. } => {
                "undo the change, or pin what is there with `outrigger plugin review --accept --pin`"
            }
            Self::WorldWritable { .. } => {
                "take the right away (`chmod o-w`); where a file system gives it to everything, set `trust.world_writable = true` in your own outrigger.toml"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}
