//! State changes of a running plugin (C7).

use std::sync::{Arc, Weak};

use outrigger_config::settings::Isolation;
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_status::{LifeState, Notice, NoticeFn, Stage};
use outrigger_plugin_trust::Verified;
use outrigger_protocol::hook::Change;
use outrigger_protocol::rpc::LoadedPlugin;
use serde_json::Value;

use super::{Plugin, Registry, custom_points};
use crate::access::manifest::ManifestShown;
use crate::access::settings::PluginRules;
use crate::error::PluginError;

/// The new version of a plugin.
pub struct Fresh {
    /// Its files.
    pub resolved: ResolvedPlugin,
    /// Its rules.
    pub rules: PluginRules,
    /// Its trust record.
    pub verified: Option<Verified>,
    /// Its manifest for display.
    pub shown: Option<ManifestShown>,
}

/// The first call of a `config` hook, with its changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Configured {
    /// Index of the plugin's hooks object.
    pub instance: usize,
    /// The hook's name as the plugin spells it.
    pub hook: String,
    /// The configuration after the previous hooks.
    pub before: Value,
    /// Changes made by the hook.
    pub changes: Vec<Change>,
}

impl Registry {
    /// Marks a plugin that held up the shared process in an earlier start for its own process. One that requests the shared
    /// process stays there.
    pub fn quarantined_before(&self, index: usize, cause: &str) {
        self.change(index, |plugin| {
            if plugin.rules.isolation != Isolation::Shared {
                plugin.rules.isolation = Isolation::Own;
                plugin.quarantine = Some(cause.to_owned());
            }
        });
    }

    /// How far it is.
    pub fn stage_now(&self, index: usize) -> Option<Stage> {
        self.with(index, |plugin| plugin.stage)
    }

    /// Suspends or resumes a plugin; its process stays. Returns false if its state does not allow that.
    pub fn suspend(&self, index: usize, suspend: bool) -> bool {
        let (from, to) = if suspend {
            (Stage::Active, Stage::Suspended)
        } else {
            (Stage::Suspended, Stage::Active)
        };
        let fits = self.with(index, |plugin| plugin.stage) == Some(from);
        if fits {
            self.change(index, |plugin| {
                plugin.stage = to;
                // The caller reports it.
                plugin.notified = Some(to.into());
            });
        }
        fits
    }

    /// Replaces its files and rules; returns the previous ones.
    pub fn exchange(&self, index: usize, fresh: Fresh) -> Option<Fresh> {
        let mut before = None;
        self.change(index, |plugin| {
            let resolved = plugin.resolved.replace(fresh.resolved);
            plugin.version = plugin.resolved.as_ref().and_then(|it| it.version.clone());
            plugin.own = plugin
                .resolved
                .as_ref()
                .map(custom_points::declared)
                .unwrap_or_default();
            let rules = std::mem::replace(&mut plugin.rules, fresh.rules);
            let verified = std::mem::replace(&mut plugin.verified, fresh.verified);
            let shown = std::mem::replace(&mut plugin.manifest, fresh.shown);
            before = resolved.map(|resolved| Fresh {
                resolved,
                rules,
                verified,
                shown,
            });
        });
        before
    }

    /// Sets the listener for state changes, and reports known states to it at once.
    pub fn notifies(&self, notice: &NoticeFn) {
        // Set once, at the start.
        let _ = self.notice.set(Arc::clone(notice));
        for index in 0..self.count() {
            self.tell_state(index);
        }
    }

    /// Reports the plugin's state if it differs from the last one reported. A restarting process is not a change of state.
    pub(super) fn tell_state(&self, index: usize) {
        let Some(notice) = self.notice.get() else {
            return;
        };
        let notified = {
            let mut inner = self.write();
            let Some(plugin) = inner.plugins.get_mut(index) else {
                return;
            };
            let state = LifeState::from(plugin.stage);
            let again = state == LifeState::Registered && plugin.notified.is_some();
            if again || plugin.notified == Some(state) {
                return;
            }
            plugin.notified = Some(state);
            (state, plugin.id.clone(), plugin.why(), plugin.group)
        };
        let (state, plugin, error, group) = notified;
        let processes = self.processes.get().and_then(Weak::upgrade);
        let generation = processes.and_then(|processes| processes.generation(group?));
        let ended = matches!(state, LifeState::Failed | LifeState::Deactivated);
        notice(Notice::State {
            plugin,
            state,
            action: state.action().to_owned(),
            generation: generation.unwrap_or_default(),
            error: error.filter(|_| ended),
        });
    }

    /// Sets how its `config` hooks are called from now on.
    pub fn configured_as(&self, index: usize, configured: Vec<Configured>) {
        self.change(index, |plugin| plugin.configured = configured);
    }

    /// Prepares an ended plugin for another start, in its current version.
    pub fn revive(&self, index: usize, fresh: Fresh) {
        self.resolved(index, fresh.resolved, fresh.rules);
        self.change(index, |plugin| {
            plugin.verified = fresh.verified;
            plugin.manifest = fresh.shown;
            plugin.cause = None;
        });
    }

    /// Returns whether a plugin has this process.
    pub fn lives_in(&self, group: u64) -> bool {
        let inner = self.read();
        inner.plugins.iter().any(|it| it.group == Some(group))
    }

    /// Returns the active plugins that depend on this one.
    pub fn dependents(&self, index: usize) -> Vec<String> {
        let inner = self.read();
        let Some(id) = inner.plugins.get(index).map(|plugin| plugin.id.clone()) else {
            return Vec::new();
        };
        inner
            .plugins
            .iter()
            .filter(|plugin| plugin.stage == Stage::Active && plugin.needs(&id))
            .map(|plugin| plugin.id.clone())
            .collect()
    }

    /// Returns the suspended plugins, dependents first; without those hosted by a suspended plugin, which are suspended with it.
    pub fn suspended(&self) -> Vec<String> {
        let inner = self.read();
        let is_suspended = |plugin: &&Plugin| plugin.stage == Stage::Suspended;
        let hosted = |plugin: &&Plugin| {
            let host = plugin.host.and_then(|host| inner.plugins.get(host));
            host.is_some_and(|host| is_suspended(&host))
        };
        let mut left: Vec<&Plugin> = inner.plugins.iter().filter(is_suspended).collect();
        left.retain(|plugin| !hosted(plugin));
        let mut ordered = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let free = |plugin: &&Plugin| !left.iter().any(|other| other.needs(&plugin.id));
            // Among plugins that need each other, any may come first.
            let next = left.iter().position(free).unwrap_or(0);
            ordered.push(left.remove(next).id.clone());
        }
        ordered
    }

    /// Returns its first inactive dependency with the state of that one.
    pub fn lacks(&self, needs: &[String], bundled: &[String]) -> Option<(String, Option<Stage>)> {
        let stage = |id: &str| self.index_of(id).and_then(|index| self.stage_now(index));
        let mut needs = needs.iter().filter(|id| !bundled.contains(id));
        needs.find_map(|id| match stage(id) {
            Some(Stage::Active) => None,
            other => Some((id.clone(), other)),
        })
    }

    /// Returns why a plugin's answer is rejected as a whole.
    pub fn refuses(&self, index: usize, loaded: &LoadedPlugin) -> Option<PluginError> {
        let problem = loaded.problems.first()?;
        loaded.instances.is_empty().then(|| PluginError::Load {
            plugin: self
                .with(index, |plugin| plugin.id.clone())
                .unwrap_or_default(),
            stage: problem.stage.clone(),
            message: problem.message.clone(),
        })
    }
}

impl Plugin {
    fn needs(&self, id: &str) -> bool {
        self.depends_on().iter().any(|need| need == id)
    }

    /// Returns the dependencies in its manifest.
    pub fn depends_on(&self) -> &[String] {
        let resolved = self.resolved.as_ref();
        let manifest = resolved.and_then(|it| it.manifest.as_ref());
        manifest.map_or(&[], |manifest| manifest.depends_on.as_slice())
    }
}
