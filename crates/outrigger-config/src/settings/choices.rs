//! Settings that are one of several words.

use serde::{Deserialize, Serialize};

/// `discovery.profile` (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginProfile {
    /// All bundled plugins but `telegram` and `mcp`.
    #[default]
    Minimal,
    /// `telegram` too.
    Messaging,
    /// `mcp` too.
    Full,
}

/// `sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// On.
    #[default]
    On,
    /// Off: plugins may do what the user may do, and rules hold for tools only, not for the processes they start.
    Off,
    /// On, and where the system cannot enforce all of it, nothing is started.
    Strict,
}

/// `trust.projects`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustProjects {
    /// Those that are there when a project is first used are trusted; what comes later is asked for.
    #[default]
    Trust,
    /// Each is asked for.
    Ask,
    /// None is started, but for those that were trusted before.
    Deny,
}

/// `trust.changes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustChanges {
    /// It is trusted as it is now, without a question: for those who write plugins.
    Allow,
    /// A person is asked; where there is none, it is not started.
    #[default]
    Ask,
}

/// `tools.sandbox`: what shell commands of the model may touch (issue 5). What a `deny` rule names is kept from them in
/// each of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// All that the user may.
    Full,
    /// Everything but secrets of the home folder may be read; the project, caches and a temporary folder of their own may be
    /// changed.
    #[default]
    WorkspaceWrite,
    /// The same may be read; only a temporary folder of their own may be changed.
    ReadOnly,
}

/// `js.install`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Install {
    /// Once, when a plugin needs Bun and there is none, and the person at the terminal says yes. Without a terminal not at
    /// all (issue 3: only with the user's consent).
    #[default]
    Ask,
    /// Once, when a plugin needs Bun and there is none.
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
    /// It shares a process with plugins of the same grants until it hangs or crashes that; then it has one of its own.
    #[default]
    Auto,
    /// It shares a process, whatever it does.
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
    /// For a dark ground.
    #[default]
    Dark,
    /// For a light ground.
    Light,
}

impl TuiTheme {
    /// Its name.
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
    /// As many as the environment says.
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
