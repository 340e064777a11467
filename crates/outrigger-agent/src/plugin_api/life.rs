//! Changes the state of running plugins (C7). The result is published as `outrigger.plugin.state` and recorded in the audit.

use std::sync::Arc;

use outrigger_plugins::PluginError;
use outrigger_tools::ToolRuntime;

use crate::state::{Agent, AgentState};

impl Agent {
    /// Takes a plugin out of the run: its hooks and tools are not called until it is resumed; its process stays.
    ///
    /// # Errors
    /// `plugin.life_cycle`.
    pub async fn suspend_plugin(&self, id: &str) -> Result<(), PluginError> {
        self.state.plugins.host.suspend(id).await?;
        tools(&self.state);
        Ok(())
    }

    /// Brings a suspended plugin back.
    ///
    /// # Errors
    /// `plugin.life_cycle`.
    pub async fn resume_plugin(&self, id: &str) -> Result<(), PluginError> {
        self.state.plugins.host.resume(id).await?;
        tools(&self.state);
        Ok(())
    }

    /// Loads a plugin anew beside the one that runs and lets it take over; answers the generation of its process.
    ///
    /// # Errors
    /// Why the new one is of no use; the old one runs on.
    pub async fn reload_plugin(&self, id: &str) -> Result<u64, PluginError> {
        let generation = self.state.plugins.host.reload(id).await?;
        tools(&self.state);
        Ok(generation)
    }

    /// Returns the id that another agent's plugin has in this agent if it is the same plugin: a grant then applies to both. Ids
    /// are numbered per folder, and a project's plugin may have the name of the user's plugin in another folder.
    #[must_use]
    pub fn same_plugin(&self, other: &Self, id: &str) -> Option<String> {
        let name_of = |agent: &Self, id: &str| agent.state.plugins.host.grant_name(&id.into());
        let name = name_of(other, id)?;
        let mut here = self.state.plugins.host.list().into_iter().map(|it| it.id);
        here.find(|it| name_of(self, it).as_ref() == Some(&name))
    }

    /// Returns whether a plugin's process could not be started and a retry may help.
    #[must_use]
    pub fn has_unstarted_plugins(&self) -> bool {
        !self.state.plugins.host.unstarted().is_empty()
    }

    /// Retries the processes that could not be started. The result is published like that of a reload.
    pub async fn start_unstarted_plugins(&self) {
        for id in self.state.plugins.host.unstarted() {
            if let Err(error) = self.reload_plugin(&id).await {
                tracing::debug!("[plugin] {error}");
            }
        }
    }
}

/// Updates the runtime's tools to what plugins contribute now. A bundled tool that one of them had replaced is restored.
fn tools(state: &Arc<AgentState>) {
    crate::plugin_api::plugin_tools::register(state);
    let now = state.plugins.host.tools();
    state.tools.runtime.retain(|spec| {
        let is = |entry: &outrigger_plugins::PluginToolEntry| {
            entry.spec.source == spec.source && entry.spec.name == spec.name
        };
        !spec.source.starts_with("plugin:") || now.iter().any(is)
    });
    let bundled = ToolRuntime::new();
    match outrigger_tools::builtin::register_all(&bundled, &state.tools.options) {
        Ok(()) => state.tools.runtime.fill(&bundled),
        Err(error) => tracing::warn!("[plugin] {error}"),
    }
    crate::plugin_api::capability_grants::narrow(state);
}
