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

/// A plugin with its stage and contributions.
#[derive(Debug)]
pub struct Plugin {
    /// Its id.
    pub id: String,
    /// Spec as declared.
    pub spec: String,
    /// Its files, once installed.
    pub resolved: Option<ResolvedPlugin>,
    /// Its rules.
    pub rules: PluginRules,
    /// Key of its process.
    pub group: Option<u64>,
    pub(super) declared_in: PathBuf,
    /// From a project.
    pub local: bool,
    pub(super) kind: PluginSource,
    pub(super) version: Option<String>,
    pub(super) stage: Stage,
    pub(super) cause: Option<Cause>,
    /// The state that was reported last (C7).
    pub(super) notified: Option<LifeState>,
    /// Whether skipping it is worth a line.
    pub(super) mention: bool,
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) instances: Vec<Instance>,
    pub(super) load_ms: f64,
    pub(super) quarantine: Option<String>,
    /// Its trust record.
    pub verified: Option<Verified>,
    /// Its manifest.
    pub manifest: Option<ManifestShown>,
    /// Points and events that it declared.
    pub(super) own: Arc<Declarations>,
    /// Index of its host (C8).
    pub(super) host: Option<usize>,
    /// First calls of its `config` hooks.
    pub configured: Vec<Configured>,
}

impl Plugin {
    /// Returns the NAME of the `[plugins.NAME]` that grants it something.
    pub(super) fn grant_key(&self) -> String {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        grant_key(source.as_ref()).unwrap_or(&self.id).to_owned()
    }

    /// Returns whether a `[plugins.NAME]` may be about it.
    pub fn goes_by(&self, name: &str) -> bool {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        let names = names_of(&self.id, &self.spec, source.as_ref());
        let own = self.id.split('#').next();
        own == Some(name) || names.iter().any(|it| it == name)
    }

    /// Returns the identity of its source, whatever its id: a package of npm's registry in any version, or an entry
    /// as declared.
    pub fn source_key(&self) -> String {
        let source = Source::parse(&self.spec, &self.declared_in).ok();
        match grant_key(source.as_ref()) {
            Some(key) => key.to_owned(),
            None => format!("{} in {}", self.spec, self.declared_in.display()),
        }
    }

    /// Returns the package that the user's own list names, whole and from npm's registry. The name of a file, and that of a
    /// project's package, is its author's choice.
    pub fn package_of_user(&self) -> Option<String> {
        let source = Source::parse(&self.spec, &self.declared_in).ok()?;
        match &source {
            Source::Npm { name, .. } if !self.local && self.host.is_none() => {
                grant_key(Some(&source)).map(|_| name.clone())
            }
            _ => None,
        }
    }

    /// Returns the identity of this version: changes with its files. `None` before they are installed.
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

    /// Returns whether it has ended and does not restart automatically.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Failed | Stage::Off | Stage::Skipped)
    }

    /// Returns why it has ended.
    pub fn why(&self) -> Option<String> {
        self.cause.as_ref().map(|cause| cause.message.clone())
    }

    /// Returns whether its files are installed and nothing prevents its start so far.
    pub fn is_installed(&self) -> bool {
        self.stage == Stage::Installed
    }

    pub(super) fn come_to(&mut self, stage: Stage) {
        if self.stage != Stage::Suspended {
            self.stage = stage;
        }
    }

    /// Creates a plugin from a configuration entry; nothing else is known yet.
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
