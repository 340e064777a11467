//! Programs with importable sessions, and the sessions found.

use std::path::{Path, PathBuf};

use outrigger_protocol::Millis;

/// A program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// This program, through a file of `outrigger export`.
    #[default]
    Outrigger,
    /// OpenCode.
    OpenCode,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl Program {
    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outrigger => "outrigger",
            Self::OpenCode => "opencode",
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// Returns the display name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Outrigger => "Outrigger",
            Self::OpenCode => "OpenCode",
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// Returns the folder of its sessions. `variable` looks up an environment variable.
    #[must_use]
    pub fn place(self, home: &Path, variable: impl Fn(&str) -> Option<String>) -> PathBuf {
        let named = |name: &str| {
            variable(name)
                .filter(|it| !it.is_empty())
                .map(PathBuf::from)
        };
        match self {
            Self::Outrigger => home.to_owned(),
            Self::OpenCode => {
                let data = named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
                data.join("opencode")
            }
            Self::Claude => {
                let folder = named("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.join(".claude"));
                folder.join("projects")
            }
            Self::Codex => {
                let folder = named("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
                folder.join("sessions")
            }
        }
    }
}

/// An available session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its identifier.
    pub id: String,
    /// Its title, or its start.
    pub title: String,
    /// Its working directory.
    pub directory: String,
    /// When it was last used.
    pub updated: Millis,
    /// The session whose agent started it.
    pub parent: Option<String>,
    /// The file that contains it.
    pub file: PathBuf,
}
