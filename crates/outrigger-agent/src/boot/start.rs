//! Starting an agent. [`Agent::boot`] is the table of contents: each step is a function of [`Bootstrap`] and a file of
//! `start/`.

mod assemble;
mod bootstrap;
mod catalog;
mod config_hooks;
mod helpers;
mod hold_models;
mod models;
mod plugins;

use std::time::Duration;

use outrigger_mcp_tools::skill_servers::GRACE;

use self::assemble::Parts;
use self::bootstrap::Bootstrap;
pub(crate) use self::helpers::{Helpers, Owner};
pub(crate) use self::models::model_options;
pub(crate) use self::plugins::worktree;
use crate::boot::options::Boot;
use crate::boot::strict;
use crate::error::AgentError;
use crate::state::Agent;

impl Agent {
    /// Starts an agent. Plugins that fail are listed with their cause and cost nothing else.
    ///
    /// # Errors
    /// A configuration or store that cannot be used, and [`AgentError::StrictPlugins`] where all plugins have to load.
    pub async fn boot(boot: Boot) -> Result<Self, AgentError> {
        let mut start = Bootstrap::prepare(boot).await?;
        // The servers start while plugins load.
        let mcp = start.start_mcp_servers();
        let (plugins, notices) = start.load_plugins().await;
        if let Err(error) = strict::check(&start.boot, &start.config, &plugins) {
            plugins.dispose(Duration::from_secs(5)).await;
            mcp.shutdown(GRACE).await;
            start.abandon().await;
            return Err(error);
        }
        let configured = start.run_config_hooks(&plugins).await;
        let mcp_waiting = start.configure_mcp_servers(&mcp);
        let models = start.models(&plugins, &configured);
        let skills = start.find_skills(&plugins).await;
        let tools = start.register_tools()?;
        let state = start.assemble(Parts {
            plugins,
            mcp,
            mcp_waiting,
            models,
            skills,
            tools,
            ungranted: configured.ungranted,
            user_rules: configured.user_rules,
        });
        state.hooks_ran(configured.records);
        state.bind(notices).await;
        Ok(Self { state })
    }
}
