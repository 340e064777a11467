//! Settings with a fixed set of values.

use serde::{Deserialize, Serialize};

/// `discovery.profile` (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginProfile {
    /// All bundled plugins except `telegram` and `mcp`.
    #[default]
    Minimal,
    /// `telegram` too.
    Messaging,
    /// All, including `mcp`.
    Full,
}

/// `sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// On.
    #[default]
    On,
    /// Off: plugins may do what the user may do, and rules apply to tools only, not to the processes they start.
    Off,
    /// On; if the system cannot enforce all of it, nothing is started.
    Strict,
}

/// `trust.projects`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustProjects {
    /// Those that exist when a project is first used are trusted; later ones need approval.
    #[default]
    Trust,
    /// Each is asked for.
    Ask,
    /// None is started, except those that were trusted before.
    Deny,
}

/// `trust.changes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustChanges {
    /// It is trusted in its current state, without a question: for plugin authors.
    Allow,
    /// The user is asked; if there is none, it is not started.
    #[default]
    Ask,
}

/// `tools.sandbox`: what shell commands of the model may access. Paths named by a `deny` rule are hidden from them in each
/// profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Everything that the user may access.
    Full,
    /// Everything except secrets of the home folder is readable; the project, caches and a separate temporary folder are
    /// writable.
    #[default]
    WorkspaceWrite,
    /// The same is readable; only a separate temporary folder is writable.
    ReadOnly,
}

/// `js.install`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Install {
    /// Once, if a plugin needs Bun and it is missing, and the user at the terminal agrees. Not at all without a terminal:
    /// only with the user's consent.
    #[default]
    Ask,
    /// Once, if a plugin needs Bun and it is missing.
    Auto,
    /// Only by `outrigger plugin setup`.
    Never,
}

/// `js.environment`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// The user's, without what looks like a secret; files that it names are granted.
    #[default]
    User,
    /// A short list of harmless ones, and no files.
    List,
}

/// `js.runtime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JsRuntime {
    /// Bun if there, else Node.
    #[default]
    Auto,
    /// Bun.
    Bun,
    /// Node.
    Node,
}

/// `plugins.<id>.isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// It shares a process with plugins of the same grants until it hangs or crashes that process; then it gets its own.
    #[default]
    Auto,
    /// It always shares a process.
    Shared,
    /// It has a process of its own.
    Own,
}

/// `plugins.<id>.chat_message`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatMessage {
    /// The user's message, before the model is called, as in OpenCode.
    #[default]
    User,
    /// The assistant's message, when all of it is final.
    Assistant,
}

/// `tui.theme`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TuiTheme {
    /// The sixteen colours of the user's terminal.
    System,
    /// For a dark background.
    #[default]
    Dark,
    /// For a light background.
    Light,
}

impl TuiTheme {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }
}

/// `tui.colors`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TuiColors {
    /// As the environment indicates.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// None.
    #[serde(rename = "none")]
    None,
    /// Those of the user's terminal.
    #[serde(rename = "16")]
    Sixteen,
    /// The palette of 256.
    #[serde(rename = "256")]
    Palette,
    /// 24 bits.
    #[serde(rename = "true")]
    True,
}

/// `tui.editing`: the keys of the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Editing {
    /// Emacs' keys.
    #[default]
    Emacs,
    /// vi's modes.
    Vi,
}
