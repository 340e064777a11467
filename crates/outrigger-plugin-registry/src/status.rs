//! A plugin for lists.

use std::path::{Path, PathBuf};

use outrigger_config::PluginSource;
use outrigger_plugin_status::{BreakerStatus, Cause, LifeState, ProcessUse, Stage};
use outrigger_plugin_trust::TrustShown;
use serde::Serialize;

use crate::access::grants_in_words::UserGrants;
use crate::access::manifest::ManifestShown;

/// One plugin, for lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PluginStatus {
    /// Id of the plugin.
    pub id: String,
    /// Spec as declared.
    pub spec: String,
    /// The file that names it, or the config folder that it was found in.
    pub declared_in: PathBuf,
    /// `config`, `auto` (found in a `plugin` folder) or `tool` (a tool file).
    pub kind: PluginSource,
    /// The module that is imported, once known.
    pub entry: Option<PathBuf>,
    /// Version of its package.
    pub version: Option<String>,
    /// How far it is.
    pub stage: Stage,
    /// Lifecycle state for the stage.
    pub state: LifeState,
    /// Why it is not further.
    pub cause: Option<Cause>,
    /// Problems that did not stop it: an export that is not a function, a skipped tool.
    pub warnings: Vec<String>,
    /// Information that is not a problem: an exported helper that was called and returned no hooks.
    pub notes: Vec<String>,
    /// Its hooks, by OpenCode's names as the plugin spells them.
    pub hooks: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// Providers that its `auth` objects log in to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth: Vec<String>,
    /// Providers of its `provider` objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Id of its process while it runs.
    pub pid: Option<u32>,
    /// Number of starts of its process, from 1; 0 if it was never started.
    pub generation: u64,
    /// What its process uses, shared ones with all plugins in it; looked at once a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ProcessUse>,
    /// CPU time in milliseconds attributed to it since the start, including its exited processes: used while it held the
    /// thread, or was alone (A1). A shared process is measured once a second and after long calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_cpu_ms: u64,
    /// Hooks and tools that its process is running now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entered: Vec<String>,
    /// Why it was moved to its own process after it hung or crashed a shared one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    /// Number of events that its process never saw, since it exited or did not read them in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub events_missed: u64,
    /// Its breakers that are not at rest (A8).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<BreakerStatus>,
    /// Its trust record, once trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustShown>,
    /// Its manifest, or the defaults that it gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestShown>,
    /// What the user's settings grant it beyond its sandbox. The audit has it.
    #[serde(skip)]
    pub grants: UserGrants,
    /// The plugin that hosts it (C8).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Milliseconds for import and start.
    pub load_ms: f64,
    /// Location of its sources, once installed.
    #[serde(skip)]
    pub source: Option<SourceOf>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Location of a plugin's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOf {
    /// Its entry.
    pub file: PathBuf,
    /// Its package's folder, or the folder of its file.
    pub dir: PathBuf,
}

impl SourceOf {
    /// Creates it from both paths.
    pub fn new(file: &Path, dir: &Path) -> Self {
        Self {
            file: file.to_owned(),
            dir: dir.to_owned(),
        }
    }
}
