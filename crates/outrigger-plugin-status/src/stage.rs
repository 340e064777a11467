//! Stages and lifecycle states of plugins.

use serde::Serialize;

/// Stage of a plugin. `Found` to `Active` occur in this order; the others are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It is in the configuration.
    Found,
    /// Its package is being fetched.
    Installing,
    /// Its files are installed.
    Installed,
    /// Its process imports and starts it.
    Starting,
    /// Its plugin functions have returned.
    Initialised,
    /// Its hooks and tools are in use.
    Active,
    /// It runs, but is not called until it is resumed (C7).
    Suspended,
    /// Skipped on purpose, as in OpenCode.
    Skipped,
    /// It could not be loaded.
    Failed,
    /// It ran, and its process failed too often.
    Off,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Found => "found",
            Self::Installing => "installing",
            Self::Installed => "installed",
            Self::Starting => "starting",
            Self::Initialised => "initialised",
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Off => "off",
        })
    }
}

/// Lifecycle state of a plugin (C7), a summary of its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LifeState {
    /// It is known and loading.
    Registered,
    /// It is in the run graph.
    Active,
    /// It is not called; its process, its configuration and its state are kept.
    Suspended,
    /// It is not in the run graph, on purpose.
    Deactivated,
    /// It could not be loaded, or did not keep running.
    Failed,
}

impl LifeState {
    /// Returns the event that led to the state, if nobody requested it.
    #[must_use]
    pub fn action(self) -> &'static str {
        match self {
            Self::Registered => "register",
            Self::Active => "activate",
            Self::Suspended => "suspend",
            Self::Deactivated => "deactivate",
            Self::Failed => "fail",
        }
    }
}

impl From<Stage> for LifeState {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Found
            | Stage::Installing
            | Stage::Installed
            | Stage::Starting
            | Stage::Initialised => Self::Registered,
            Stage::Active => Self::Active,
            Stage::Suspended => Self::Suspended,
            Stage::Skipped => Self::Deactivated,
            Stage::Failed | Stage::Off => Self::Failed,
        }
    }
}
