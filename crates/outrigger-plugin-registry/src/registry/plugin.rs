//! One plugin of the list, with all that is known of it.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_config::{PluginScope, PluginSource, PluginSpec};
use outrigger_plugin_package::custom_points::Declarations;
use outrigger_plugin_package::{ResolvedPlugin, Source};
use outrigger_plugin_status::{Cause, LifeState, Stage};
use outrigger_plugin_trust::Verified;
use outrigger_protocol::rpc::Instance;

use super::Configured;
use crate::access::manifest::ManifestShown;
use crate::access::settings::PluginRules;
use crate::access::user_grants::{grant_key, names_of};

/// A plugin, how far it is and what it contributes.
#[derive(Debug)]
pub struct Plugin {
    /// Its name.
    pub id: String,
    /// As declared.
    pub spec: String,
    /// Its files, once they are there.
    pub resolved: Option<ResolvedPlugin>,
    /// What was set about it.
    pub rules: PluginRules,
    /// Its process.
    pub group: Option<u64>,
    pub(super) declared_in: PathBuf,
    /// A project brings it.
    pub local: bool,
    pub(super) kind: PluginSource,
    pub(super) version: Option<String>,
    pub(super) stage: Stage,
    pub(super) cause: Option<Cause>,
    /// The state that was reported last (C7).
    pub(super) notified: Option<LifeState>,
    /// That it is left out is worth a line.
    pub(super) mention: bool,
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) instances: Vec<Instance>,
    pub(super) load_ms: f64,
    pub(super) quarantine: Option<String>,
    /// What it was trusted as.
    pub verified: Option<Verified>,
    /// What it says of itself.
    pub manifest: Option<ManifestShown>,
    /// Points and events that it declared.
    pub(super) own: Arc<Declarations>,
    /// The plugin that hosts it, by index (C8).
    pub(super) host: Option<usize>,
    /// Its `config` hooks as they were called at the start.
    pub configured: Vec<Configured>,
}

impl Plugin {
    /// NAME of the `[plugins.NAME]` that grants it something.
    pub(super) fn grant_key(&self) -> String {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        grant_key(source.as_ref()).unwrap_or(&self.id).to_owned()
    }

    /// Whether a `[plugins.NAME]` may be about it.
    pub fn goes_by(&self, name: &str) -> bool {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        let names = names_of(&self.id, &self.spec, source.as_ref());
        let own = self.id.split('#').next();
        own == Some(name) || names.iter().any(|it| it == name)
    }

    /// What it is, whatever it is called: a package of npm's registry in any version, or an entry as it is declared.
    pub fn source_key(&self) -> String {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        match grant_key(source.as_ref()) {
            Some(key) => key.to_owned(),
            None => format!("{} in {}", self.spec, self.declared_in.display()),
        }
    }

    /// What it is in this version: another name when its files change. `None` before they are there.
    pub fn version_key(&self) -> Option<String> {
        let resolved = self.resolved.as_ref()?;
        let verified = self.verified.as_ref().map(|it| it.content.own());
        let changed = || {
            let changed = resolved.file.metadata().ok()?.modified().ok()?;
            let age = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(format!("{}", age.as_nanos()))
        };
        let version = verified.or_else(changed).or(self.version.clone())?;
        Some(format!("{}@{version}", self.source_key()))
    }

    /// It is not in the run, and does not come by itself.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Failed | Stage::Off | Stage::Skipped)
    }

    /// Why it has ended.
    pub fn why(&self) -> Option<String> {
        self.cause.as_ref().map(|cause| cause.message.clone())
    }

    /// Its files are there, and nothing speaks against starting it so far.
    pub fn is_installed(&self) -> bool {
        self.stage == Stage::Installed
    }

    pub(super) fn come_to(&mut self, stage: Stage) {
        if self.stage != Stage::Suspended {
            self.stage = stage;
        }
    }

    /// One that an entry of the configuration names, and nothing more is known of.
    pub fn found(id: String, declared: &PluginSpec) -> Self {
        Self {
            id,
            spec: declared.spec.clone(),
            declared_in: declared.declared_in.clone(),
            local: declared.scope == PluginScope::Local,
            kind: declared.source,
            resolved: None,
            rules: PluginRules::default(),
            group: None,
            version: None,
            stage: Stage::Found,
            cause: None,
            notified: None,
            mention: false,
            warnings: Vec::new(),
            configured: Vec::new(),
            notes: Vec::new(),
            instances: Vec::new(),
            load_ms: 0.0,
            quarantine: None,
            verified: None,
            manifest: None,
            own: Arc::default(),
            host: None,
        }
    }
}
