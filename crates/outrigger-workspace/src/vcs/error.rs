//! Errors of git.

/// Why git failed.
#[derive(Debug, thiserror::Error)]
pub enum VcsError {
    /// The folder is not under version control.
    #[error("the folder is not in a git repository")]
    NotGit,
    /// There is no `git` on the path.
    #[error("there is no program `git` on the PATH; install it")]
    NoGit,
    /// The patch does not apply.
    #[error("the patch cannot be applied: {0}")]
    NotClean(String),
    /// A rule denies a file that the patch names.
    #[error("the configuration forbids to {what} {file}, which the patch names")]
    Denied {
        /// `read` or `edit`.
        what: &'static str,
        /// Relative to the root of the repository.
        file: String,
    },
    /// A plugin sent a patch for files that it may not write itself.
    #[error("the patch is not applied: {0}")]
    NotGranted(String),
    /// A plugin's patch names a file that makes something run later.
    #[error("a plugin's patch does not change {file}: {runs}")]
    RunsLater {
        /// Relative to the root of the repository.
        file: String,
        /// What runs it.
        runs: &'static str,
    },
    /// The rules cannot be enforced for git, or a pipe has replaced one of its files.
    #[error("git was not started: {0}")]
    Sandbox(String),
    /// Git failed otherwise.
    #[error("`git {what}` failed: {message}")]
    Failed {
        /// Its first argument.
        what: String,
        /// Its message.
        message: String,
    },
}

impl VcsError {
    /// Returns the stable code; those of a patch are OpenCode's reasons.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotGit => "non-git",
            Self::NoGit => "no-git",
            Self::NotClean(_) => "not-clean",
            Self::Denied { .. } | Self::NotGranted(_) | Self::RunsLater { .. } => "denied",
            Self::Sandbox(_) => "sandbox",
            Self::Failed { .. } => "failed",
        }
    }
}
