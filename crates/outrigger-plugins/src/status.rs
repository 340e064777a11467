//! How far each plugin is, and why it is not further.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_config::PluginSource;
use serde::Serialize;

use crate::breakers::{BreakerState, BreakerStatus};
use crate::error::PluginError;
use crate::manifest::ManifestShown;
use crate::trust::TrustShown;
use crate::watch::ProcessUse;

/// How far a plugin is. `Found` to `Active` come in this order; the others end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It is in the configuration.
    Found,
    /// Its package is being fetched.
    Installing,
    /// Its files are there.
    Installed,
    /// Its process imports and starts it.
    Starting,
    /// Its plugin functions have answered.
    Initialised,
    /// Its hooks and tools are in use.
    Active,
    /// It runs, and is not called until it is resumed (C7).
    Suspended,
    /// Left out on purpose, as the reference leaves it out.
    Skipped,
    /// It could not be brought further.
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

/// The state of a plugin's life (C7), which a stage says more finely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LifeState {
    /// It is known and on its way.
    Registered,
    /// It is in the run graph.
    Active,
    /// It is not called; its process, its configuration and its state are kept.
    Suspended,
    /// It is not in the run graph, on purpose.
    Deactivated,
    /// It could not be brought there, or did not stay.
    Failed,
}

impl LifeState {
    /// What brought a plugin there, where nobody asked for it.
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

/// Why a plugin is skipped, failed or off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// How far it had come.
    pub at: Stage,
    /// Stable code of the error.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Cause {
    /// The cause of an error that ended a plugin's way at a stage.
    #[must_use]
    pub fn new(at: Stage, error: &PluginError) -> Self {
        Self {
            at,
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// A report to whoever watches plugins load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Plugin.
    pub plugin: String,
    /// As declared.
    pub spec: String,
    /// How far it is now.
    pub stage: Stage,
    /// Why, for `Skipped`, `Failed` and `Off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// It is left out and its user may not know: worth a line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mention: bool,
    /// Hooks of it that are refused without it (C5), by the reference's names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<String>,
    /// How much has come, from time to time while it is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
}

impl Progress {
    /// A plugin that is at this stage, and nothing else of it.
    #[must_use]
    pub fn at(plugin: &str, spec: &str, stage: Stage) -> Self {
        Self {
            plugin: plugin.to_owned(),
            spec: spec.to_owned(),
            stage,
            cause: None,
            mention: false,
            guards: Vec::new(),
            fetched: None,
        }
    }
}

/// How much of an installation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fetched {
    /// Unpacked bytes.
    pub bytes: u64,
    /// What they will be in the end, about; `None` where that depends on what else has to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl Notice {
    /// A state that a plugin came to by itself; how it came there is told step by step as [`Progress`].
    #[must_use]
    pub fn is_of_itself(&self) -> bool {
        let own = ["register", "activate", "deactivate", "fail"];
        matches!(self, Self::State { action, .. } if own.contains(&action.as_str()))
    }
}

/// Told of what becomes of plugins while they run. Called where it happens; it must not block.
pub type NoticeFn = Arc<dyn Fn(Notice) + Send + Sync>;

/// What became of a plugin while it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    /// A breaker opened, let a trial through or closed (A8).
    Breaker {
        /// Plugin.
        plugin: String,
        /// Hook.
        hook: String,
        /// How the breaker stands now.
        state: BreakerState,
        /// For how long, when it opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        pause_ms: Option<u64>,
    },
    /// It hung or crashed the process that it shared, and has one of its own now.
    Quarantine {
        /// Plugin.
        plugin: String,
        /// What it did.
        cause: String,
    },
    /// Its process was ended and is started again.
    Restart {
        /// Plugins that live in it.
        plugins: Vec<String>,
        /// Why.
        cause: String,
        /// Whose fault it was; none where that cannot be told or was nobody's.
        #[serde(skip_serializing_if = "Option::is_none")]
        culprit: Option<String>,
    },
    /// It has come to another state, or somebody tried to bring it there (C7).
    State {
        /// Plugin.
        plugin: String,
        /// How it is now.
        state: LifeState,
        /// What somebody asked for (`suspend`, `resume`, `reload`), or what happened (`register`, `activate`, `deactivate`,
        /// `fail`).
        action: String,
        /// The generation of its process.
        generation: u64,
        /// Why it did not come about; what ran before runs on.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Its process is close to a limit and goes on: it burns CPU with no call open, or has hardly a file left.
    Limit {
        /// Plugins that live in it.
        plugins: Vec<String>,
        /// Which limit, and how far it is.
        cause: String,
    },
    /// A command hook says something to the user, or something is wrong with it that stops nothing.
    Command {
        /// The file that it stands in.
        plugin: String,
        /// The session that it was called for.
        #[serde(rename = "sessionID", skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// What it says.
        message: String,
    },
    /// Whether it may connect to a host was decided.
    Network {
        /// Plugins that live in the process.
        plugins: Vec<String>,
        /// Host as they named it.
        host: String,
        /// Port.
        port: u16,
        /// The address that it leads to, where that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Code of the refusal; it may when there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
        /// Refusals before this one that were not told.
        #[serde(skip_serializing_if = "is_zero")]
        untold: u64,
    },
    /// Its process asked for what its manifest does not ask for, or as somebody who does not live in it.
    Refused {
        /// Plugins that live in the process.
        plugins: Vec<String>,
        /// The request: a route, a point, an event, a credential.
        request: String,
        /// What refuses it: `permissions.client`, `own.undeclared`, `credential.member`.
        rule: String,
    },
    /// It is not called any more.
    Off {
        /// Plugin.
        plugin: String,
        /// Why.
        cause: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One plugin, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PluginStatus {
    /// Name.
    pub id: String,
    /// As declared.
    pub spec: String,
    /// The file that names it, or the config folder that it was found in.
    pub declared_in: PathBuf,
    /// `config`, `auto` (found in a `plugin` folder) or `tool` (a tool file).
    pub kind: PluginSource,
    /// The module that is imported, once it is known.
    pub entry: Option<PathBuf>,
    /// Version of its package.
    pub version: Option<String>,
    /// How far it is.
    pub stage: Stage,
    /// The same as a state of its life.
    pub state: LifeState,
    /// Why it is not further.
    pub cause: Option<Cause>,
    /// What went wrong without stopping it: an export that is no function, a tool that was skipped.
    pub warnings: Vec<String>,
    /// What is worth knowing and nothing wrong: an exported helper that was called and brought no hooks.
    pub notes: Vec<String>,
    /// Its hooks, by OpenCode's names as the plugin spells them.
    pub hooks: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often its process has been started, from 1; 0 when it never was.
    pub generation: u64,
    /// What its process uses, shared ones with all plugins in it; looked at once a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ProcessUse>,
    /// CPU time that was its own since the start, in milliseconds, those of its processes that have ended too: what was used
    /// while it held the thread, or was alone (A1). That of a shared process is looked at once a second and behind long calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_cpu_ms: u64,
    /// Its hooks and tools that its process is in at this moment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entered: Vec<String>,
    /// Why it was given a process of its own, when it hung or crashed a shared one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    /// How many events its process never saw, since it ended or did not read them in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_missed: u64,
    /// Its breakers that are not at rest (A8).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<BreakerStatus>,
    /// What it was trusted as, once it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustShown>,
    /// What it says of itself in a manifest, or what such a plugin is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestShown>,
    /// The plugin that hosts it (C8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Milliseconds for import and start.
    pub load_ms: f64,
    /// Where its sources are, once they are there.
    #[serde(skip)]
    pub source: Option<crate::matrix::SourceOf>,
}
