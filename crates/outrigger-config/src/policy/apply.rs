//! Applies a policy to settings.

use std::fmt;

use serde::Serialize;

use super::pattern::matches;
use super::{Grant, PolicyFile};
use crate::settings::keys::dotted;
use crate::settings::{Plugin, Sandbox, Settings};
use crate::{ConfigProblem, Policy};

impl PolicyFile {
    /// Makes settings as strict as the policy; returns its changes.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Vec<ConfigProblem> {
        let mut changes = Changes {
            file: self.path.display().to_string(),
            made: Vec::new(),
        };
        changes.raise_levels(&self.policy, settings);
        changes.require_plugins(&self.policy, settings);
        settings.forbid.add(&self.policy.forbid);
        for (name, plugin) in &mut settings.plugins {
            changes.take_grants(&self.policy, name, plugin);
        }
        changes.made
    }
}

/// Changes of the settings by a policy.
struct Changes {
    file: String,
    made: Vec<ConfigProblem>,
}

impl Changes {
    fn add(&mut self, key: impl Into<String>, now: impl fmt::Display) {
        self.made.push(ConfigProblem {
            file: self.file.clone(),
            pointer: Some(key.into()),
            message: format!("the policy of this machine makes it {now}"),
        });
    }

    fn raise_levels(&mut self, policy: &Policy, settings: &mut Settings) {
        // The sandbox of processes enforces what is forbidden.
        let sandboxed = (!policy.forbid.is_empty()).then_some(Sandbox::On);
        let minimum = [policy.sandbox.minimum, sandboxed]
            .into_iter()
            .flatten()
            .max_by_key(|it| level(*it));
        let is_more = |least: &Sandbox| level(*least) > level(settings.sandbox);
        if let Some(least) = minimum.filter(is_more) {
            settings.sandbox = least;
            self.add("sandbox", word(&least));
        }
        let trust = &mut settings.trust;
        self.raise(
            "tools.sandbox",
            policy.sandbox.tools,
            &mut settings.tools.sandbox,
        );
        self.raise("trust.projects", policy.trust.projects, &mut trust.projects);
        self.raise("trust.changes", policy.trust.changes, &mut trust.changes);
        if policy.trust.world_writable == Some(false) && trust.world_writable {
            trust.world_writable = false;
            self.add("trust.world_writable", "false");
        }
    }

    fn raise<T: Copy + PartialOrd + Serialize>(
        &mut self,
        key: &str,
        least: Option<T>,
        now: &mut T,
    ) {
        if let Some(least) = least.filter(|it| *it > *now) {
            *now = least;
            self.add(key, word(&least));
        }
    }

    /// Enables required plugins, with the hooks that refuse in their absence.
    fn require_plugins(&mut self, policy: &Policy, settings: &mut Settings) {
        for (id, hooks) in &policy.plugins.require {
            let plugin = settings.plugins.entry(id.clone()).or_default();
            if plugin.disabled || plugin.enabled == Some(false) {
                self.add(dotted(&dotted("plugins", id), "enabled"), "true");
            }
            (plugin.disabled, plugin.enabled) = (false, Some(true));
            for hook in hooks {
                for list in [&mut plugin.required, &mut plugin.fail_closed] {
                    if !list.contains(hook) {
                        list.push(hook.clone());
                    }
                }
            }
        }
    }

    /// Removes grants that no user may give a plugin.
    fn take_grants(&mut self, policy: &Policy, name: &str, plugin: &mut Plugin) {
        let key = |field: &str| dotted(&dotted("plugins", name), field);
        let forbidden = |grant: Grant| policy.grants.forbid.contains(&grant);
        let is_kept = |variable: &String| {
            let mut patterns = policy.grants.forbid_env.iter();
            !forbidden(Grant::Env) && !patterns.any(|it| matches(it, variable))
        };
        let before = plugin.env.len();
        plugin.env.retain(is_kept);
        if plugin.env.len() < before {
            self.add(key("env"), format_args!("{:?}", plugin.env));
        }
        if forbidden(Grant::Ports) && !plugin.ports.is_empty() {
            plugin.ports.clear();
            self.add(key("ports"), "[]");
        }
        if forbidden(Grant::UnixSockets) && plugin.unix_sockets {
            plugin.unix_sockets = false;
            self.add(key("unix_sockets"), "false");
        }
    }
}

fn level(sandbox: Sandbox) -> u8 {
    match sandbox {
        Sandbox::Off => 0,
        Sandbox::On => 1,
        Sandbox::Strict => 2,
    }
}

/// Returns a value as written in a file.
pub(super) fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
