//! The calls of `config` hooks: how each was made, what it changed, and the secrets that it must not see.

use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::{Configured, Registry};

/// Minimum length of a variable's value that is looked for in texts: shorter ones are switches and numbers.
const MIN_SECRET: usize = 8;

/// The configuration before and after a call of a `config` hook that changed it. Kept as it was, whatever becomes of the plugin.
#[derive(Debug)]
pub struct ConfigStep {
    /// Index of the plugin.
    pub plugin: usize,
    /// As the hooks before it left the configuration.
    pub before: Value,
    /// As it left it.
    pub after: Value,
}

impl Registry {
    /// Records how a `config` hook was called, and its changes.
    pub fn configured(&self, index: usize, configured: Configured) {
        self.change(index, |plugin| plugin.configured.push(configured));
    }

    /// Adds what a call of a `config` hook changed. Calls are added in the order in which the chain made them, which differs from the
    /// load order by priorities and guards.
    pub fn add_config_step(&self, step: ConfigStep) {
        let steps = self.config_steps.write();
        let mut steps = steps.unwrap_or_else(PoisonError::into_inner);
        steps.push(Arc::new(step));
    }

    /// Returns what the calls of `config` hooks changed, in the order of the calls.
    pub fn config_steps(&self) -> Vec<Arc<ConfigStep>> {
        let steps = self.config_steps.read();
        steps.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the values of the variables that the user grants to single plugins by name, longest first.
    pub fn granted_secrets(&self) -> Vec<String> {
        let inner = self.read();
        let names = inner.plugins.iter().flat_map(|plugin| &plugin.rules.env);
        let mut values: Vec<String> = names
            .filter_map(|name| std::env::var(name).ok())
            .filter(|value| value.len() >= MIN_SECRET)
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        values
    }
}
