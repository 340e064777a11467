//! What is known of a slash command.

/// A slash command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Text with places for the arguments.
    pub template: String,
    /// Agent that runs it.
    pub agent: Option<String>,
    /// Model that it wants, `provider/model`.
    pub model: Option<String>,
    /// It runs as a subtask; unset, it does where its agent is a subagent.
    pub subtask: Option<bool>,
    /// What it was made from.
    pub source: CommandSource,
}

/// What a slash command was made from, as `GET /command` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSource {
    /// Bundled, of the configuration, or a file of commands.
    #[default]
    Command,
    /// A prompt of an MCP server. What its text says is never run.
    Mcp,
    /// A skill of this machine.
    Skill,
    /// A skill that was fetched from an address, or is of a project that nobody trusted. What its text says is never run.
    FetchedSkill,
}

impl CommandSource {
    /// OpenCode's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Mcp => "mcp",
            Self::Skill | Self::FetchedSkill => "skill",
        }
    }

    /// What its template names may be run and read: its author is trusted as the configuration is.
    #[must_use]
    pub fn is_own(self) -> bool {
        matches!(self, Self::Command | Self::Skill)
    }
}
