//! Changing the state of a plugin that runs: suspend, resume, reload (C7).

use crate::admit::again;
use crate::error::PluginError;
use crate::plugins::Plugins;
use crate::spec::Source;
use crate::status::{LifeState, Notice, Stage};

impl Plugins {
    /// Takes a plugin out of the run graph and keeps its process with all that it holds. Calls in flight end; none begins. A
    /// hook of it that refuses when it fails refuses meanwhile.
    ///
    /// # Errors
    /// `plugin.life_cycle` when it is not active.
    pub async fn suspend(&self, id: &str) -> Result<(), PluginError> {
        self.set(id, true).await
    }

    /// Brings a suspended plugin back.
    ///
    /// # Errors
    /// `plugin.life_cycle` when it is not suspended.
    pub async fn resume(&self, id: &str) -> Result<(), PluginError> {
        self.set(id, false).await
    }

    async fn set(&self, id: &str, suspend: bool) -> Result<(), PluginError> {
        let _one = self.0.changing.lock().await;
        let index = self.index(id)?;
        let action = if suspend { "suspend" } else { "resume" };
        let changed = self.0.registry.suspend(index, suspend);
        let result = match changed {
            true => Ok(()),
            false => Err(self.not(id, index, action)),
        };
        self.told(id, index, action, result.as_ref().err());
        result
    }

    /// Loads a plugin anew, in a process beside the one that it has: what changed of its files and its manifest counts, when it
    /// is trusted. When the new process answers, calls go to it; those in flight end in the old one. Plugins that share its
    /// process are started again with it. Answers the new generation.
    ///
    /// # Errors
    /// Why the new one is of no use. The old one runs on then.
    pub async fn reload(&self, id: &str) -> Result<u64, PluginError> {
        let _one = self.0.changing.lock().await;
        let index = self.index(id)?;
        let result = self.renew(id, index).await;
        self.told(id, index, "reload", result.as_ref().err());
        result
    }

    async fn renew(&self, id: &str, index: usize) -> Result<u64, PluginError> {
        let registry = &self.0.registry;
        let stage = registry.stage_now(index);
        let group = registry.with(index, |plugin| plugin.group).flatten();
        let group = group.and_then(|key| self.0.processes.get(key));
        let (Some(group), Some(Stage::Active | Stage::Suspended), Some(options)) =
            (group, stage, &self.0.options)
        else {
            return Err(self.not(id, index, "reload"));
        };
        let from_path = options.plugins.get(index).is_some_and(|declared| {
            let source = Source::parse(&declared.spec, &declared.declared_in);
            matches!(source, Ok(Source::Path(_)))
        });
        // A package stays as it was installed: by exact version, in a folder of ours.
        let before = match from_path {
            true => registry.exchange(index, again(options, index, id).await?),
            false => None,
        };
        let renewed = group.renew().await;
        if let (Err(_), Some(before)) = (&renewed, before) {
            registry.exchange(index, before);
        }
        renewed
    }

    fn index(&self, id: &str) -> Result<usize, PluginError> {
        self.0
            .registry
            .index_of(id)
            .ok_or_else(|| PluginError::Life {
                id: id.to_owned(),
                why: "no plugin is called so here".to_owned(),
            })
    }

    fn not(&self, id: &str, index: usize, action: &str) -> PluginError {
        let stage = self.0.registry.stage_now(index).unwrap_or(Stage::Found);
        PluginError::Life {
            id: id.to_owned(),
            why: format!("{action} is not possible: it is {stage}"),
        }
    }

    fn told(&self, id: &str, index: usize, action: &str, error: Option<&PluginError>) {
        let group = self.0.registry.with(index, |plugin| plugin.group).flatten();
        let group = group.and_then(|key| self.0.processes.get(key));
        let state: LifeState = self
            .0
            .registry
            .stage_now(index)
            .unwrap_or(Stage::Found)
            .into();
        match error {
            Some(error) => {
                tracing::warn!("plugin {id}: {action}: {error}; what ran before runs on")
            }
            None => tracing::info!("plugin {id}: {action}"),
        }
        if let Some(options) = &self.0.options {
            (options.notice)(Notice::State {
                plugin: id.to_owned(),
                state,
                action: action.to_owned(),
                generation: group.map_or(0, |group| group.now().1),
                error: error.map(ToString::to_string),
            });
        }
    }
}
