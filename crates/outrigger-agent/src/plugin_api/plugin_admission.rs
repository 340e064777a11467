//! Decides which plugins should run before anything is started, and records it (D2, D3).

use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_config::skills::Skill;
use outrigger_kernel::admission::{Reason, Source};
use outrigger_mcp::State;
use outrigger_plugins::{AdmitFn, Cause, PluginError, Progress, Snapshot, Stage};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::id::PluginId;
use outrigger_store::Store;
use outrigger_workspace::{Folders, ProjectLocation};

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::state::Agent;
use outrigger_stdx::clock::now_ms;

/// Creates the snapshot and applies it: what the user switched off is removed from the configuration.
pub(crate) fn decide(store: &Store, config: &mut Loaded, folders: &Folders) -> Snapshot {
    let admitted = Snapshot::of(config, &folders.data);
    // Problems of the configuration have been reported.
    let known: Vec<String> = config.problems.iter().map(ToString::to_string).collect();
    for problem in admitted.problems.iter().filter(|it| !known.contains(it)) {
        tracing::warn!("[plugin] {problem}");
    }
    hold(&admitted, config);
    store.audit_lazily(now_ms(), records(&admitted));
    admitted
}

/// MCP servers are named individually, by the configuration, a plugin, a skill or a client, and each name is the user's choice;
/// a profile removes none of them. Switching `mcp` itself off removes them all. Likewise, a key for OpenRouter, wherever it is
/// set, is the user's choice.
pub(crate) fn hold(admitted: &Snapshot, config: &mut Loaded) {
    if is_off(admitted, "mcp") {
        config.config.mcp.clear();
        config.settings.claude.mcp = false;
    }
    if is_off(admitted, "openrouter") {
        config
            .config
            .disabled_providers
            .push("openrouter".to_owned());
    }
}

impl Agent {
    /// Returns [`Self::plugin_snapshot`] with what was learned since: MCP servers from `config` hooks, skills of plugins and
    /// clients.
    #[must_use]
    pub fn plugin_snapshot_in_use(&self) -> Snapshot {
        let admitted = self.plugin_snapshot().clone();
        match self.mcp_user() {
            Some(by) => admitted.with_in_use("mcp", &by),
            None => admitted,
        }
    }

    fn mcp_user(&self) -> Option<String> {
        let servers = self.state.tools.mcp.status();
        if servers.iter().any(|it| it.state != State::Disabled) {
            let plugins = self.state.plugins.host.configured_keys(&["mcp"]);
            return Some(match plugins.first() {
                Some(plugin) => format!("the plugin {}", plugin.0),
                None => "a client".to_owned(),
            });
        }
        let brings = |it: &&Skill| !self.state.config.skill_servers(it).0.is_empty();
        let skill = self.state.catalog.skills.iter().find(brings)?;
        Some(format!("the skill {}", skill.name))
    }
}

/// Returns whether a plugin is off by an explicit choice, not only by the profile.
fn is_off(admitted: &Snapshot, id: &str) -> bool {
    let reason = admitted.bundled(id).and_then(|entry| entry.reason.as_ref());
    matches!(
        reason,
        Some(
            Reason::SwitchedOff { .. }
                | Reason::Denied { .. }
                | Reason::ForbiddenByManagedPolicy { .. }
        )
    )
}

/// Returns audit records of explicit decisions about bundled plugins. Other changes are recorded as they happen.
fn records(admitted: &Snapshot) -> Vec<AuditRecord> {
    let bundled = admitted.entries.iter();
    let bundled = bundled.filter(|it| it.source == Source::Bundled && is_off(admitted, &it.id));
    let record = |it: &outrigger_plugins::SnapshotEntry| AuditRecord {
        plugin_id: Some(PluginId(it.id.clone())),
        subject: Some("bundled".to_owned()),
        detail: Some(it.why.clone()),
        ..AuditRecord::new(AuditKind::LifeCycle, now_ms(), "disabled")
    };
    bundled.map(record).collect()
}

/// Returns the bundled plugins that others shadow, for clients.
pub(crate) fn displaced(admitted: &Snapshot) -> impl Iterator<Item = Progress> + '_ {
    let bundled = admitted.entries.iter();
    let displaced = bundled.filter(|it| {
        let by_another = matches!(it.reason, Some(Reason::ShadowedByHigherPrecedence { .. }));
        it.source == Source::Bundled && by_another
    });
    displaced.map(|it| Progress {
        cause: Some(Cause {
            at: Stage::Found,
            code: "plugin.not_admitted".to_owned(),
            message: format!("bundled plugin {} does not run: {}", it.id, it.why),
            hint: it.remedy.clone(),
        }),
        mention: true,
        ..Progress::at(&it.id, "bundled", Stage::Skipped)
    })
}

/// Decides again whether a plugin may run before a reload, with the current configuration and environment.
pub(crate) fn again(boot: &Boot, location: &ProjectLocation) -> AdmitFn {
    let (options, data) = (boot.config_options(location), boot.folders.data.clone());
    Arc::new(move |plugin| {
        let refused = |why: String| PluginError::Life {
            id: plugin.spec.clone(),
            why,
        };
        let config = outrigger_config::load(&options);
        let config = config.map_err(|error| refused(format!("the configuration: {error}")))?;
        match Snapshot::of(&config, &data).verdict(plugin) {
            Some(verdict) => verdict,
            None => Err(refused("it is no longer in the configuration".to_owned())),
        }
    })
}

/// Returns whether a bundled plugin should run with this configuration.
#[must_use]
pub fn runs_bundled(config: &Loaded, folders: &Folders, id: &str) -> bool {
    Snapshot::of(config, &folders.data).has_bundled(id)
}

/// Which plugins would run in a folder. Nothing is started, and nothing is written.
///
/// # Errors
/// A configuration that cannot be read.
pub fn plugin_snapshot(boot: &Boot) -> Result<Snapshot, AgentError> {
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
    Ok(Snapshot::of(&config, &boot.folders.data))
}
