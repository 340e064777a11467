//! `[js]`: the runtimes of plugins.

use std::path::PathBuf;

use serde::Serialize;

/// `[js]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Js {
    /// Which runtime to take.
    pub runtime: JsRuntime,
    /// Path of Bun; looked for when unset.
    pub bun: Option<PathBuf>,
    /// Path of Node; looked for when unset.
    pub node: Option<PathBuf>,
    /// Which environment variables plugin processes get.
    pub environment: Environment,
    /// Whether Bun may be fetched from npm.
    pub install: Install,
}

/// `js.install`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// The user's, without what looks like a secret; files that it names are granted.
    #[default]
    User,
    /// A short list of harmless ones, and no files.
    List,
}

/// `js.runtime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
