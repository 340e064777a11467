//! A plugin as it is listed.

use std::path::{Path, PathBuf};

use outrigger_config::PluginSource;
use outrigger_plugin_status::{BreakerStatus, Cause, LifeState, ProcessUse, Stage};
use outrigger_plugin_trust::TrustShown;
use serde::Serialize;

use crate::access::manifest::ManifestShown;

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
    /// What is worth knowing and nothing wrong: an exported helper that was called and returned no hooks.
    pub notes: Vec<String>,
    /// Its hooks, by OpenCode's names as the plugin spells them.
    pub hooks: Vec<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// The providers that its `auth` objects log in to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auth: Vec<String>,
    /// The providers that its `provider` objects are of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Its process, while it runs.
    pub pid: Option<u32>,
    /// How often its process has been started, from 1; 0 when it never was.
    pub generation: u64,
    /// What its process uses, shared ones with all plugins in it; looked at once a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ProcessUse>,
    /// CPU time that was its own since the start, in milliseconds, those of its processes that have ended too: what was used
    /// while it held the thread, or was alone (A1). That of a shared process is looked at once a second and after long calls.
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
    pub source: Option<SourceOf>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Where the sources of a plugin are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceOf {
    /// Its entry.
    pub file: PathBuf,
    /// Its package's folder, or the folder of its file.
    pub dir: PathBuf,
}

impl SourceOf {
    /// Both of them.
    pub fn new(file: &Path, dir: &Path) -> Self {
        Self {
            file: file.to_owned(),
            dir: dir.to_owned(),
        }
    }
}
