//! Whose sessions there are, and one that was found.

use std::path::{Path, PathBuf};

use outrigger_protocol::Millis;

/// Whose sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Program {
    /// Our own, in a file of `outrigger export`.
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
    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outrigger => "outrigger",
            Self::OpenCode => "opencode",
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// As people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Outrigger => "Outrigger",
            Self::OpenCode => "OpenCode",
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    /// Where it keeps its sessions. `variable` looks up a variable of the environment.
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

/// A session that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// Its identifier.
    pub id: String,
    /// Its title, or how it begins.
    pub title: String,
    /// The folder that it worked in.
    pub directory: String,
    /// When it was last used.
    pub updated: Millis,
    /// The session whose agent began it.
    pub parent: Option<String>,
    /// The file that has it.
    pub file: PathBuf,
}
