//! Slash commands as the program knows them.

/// A slash command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// Description for display.
    pub description: Option<String>,
    /// Text with placeholders for the arguments.
    pub template: String,
    /// Agent that runs it.
    pub agent: Option<String>,
    /// Its model, `provider/model`.
    pub model: Option<String>,
    /// Whether it runs as a subtask; unset: if its agent is a subagent.
    pub subtask: Option<bool>,
    /// Origin of the command.
    pub source: CommandSource,
}

/// Origin of a slash command, as in `GET /command`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSource {
    /// Bundled, from the configuration, or a command file.
    #[default]
    Command,
    /// A prompt of an MCP server. Its text is never run.
    Mcp,
    /// A skill of this machine.
    Skill,
    /// A skill that was fetched from a URL, or is from an untrusted project. Its text is never run.
    FetchedSkill,
}

impl CommandSource {
    /// Returns OpenCode's name for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Mcp => "mcp",
            Self::Skill | Self::FetchedSkill => "skill",
        }
    }

    /// Returns whether it is a skill.
    #[must_use]
    pub fn is_skill(self) -> bool {
        matches!(self, Self::Skill | Self::FetchedSkill)
    }

    /// Returns whether its template may run commands and read files: its author is trusted like the configuration.
    #[must_use]
    pub fn is_own(self) -> bool {
        matches!(self, Self::Command | Self::Skill)
    }
}
