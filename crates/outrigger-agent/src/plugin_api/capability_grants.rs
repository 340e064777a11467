//! Who does what tools do, and within what: what agents and plugins are granted, and what the user's settings hold tools to
//! (C11, D6, D7).

use outrigger_contributions::grants::constraints;
use outrigger_tools::Grant;

use crate::state::Inner;

impl Inner {
    /// What an agent was granted; `None`: everything.
    pub(crate) fn grant_of_agent(&self, agent: &str) -> Option<Grant> {
        let list = self
            .config
            .settings
            .tool_execution
            .capabilities
            .get(agent)?;
        Some(Grant {
            who: format!("the agent `{agent}`"),
            capabilities: list.iter().copied().collect(),
            how: format!("add it to `{agent}` under [capabilities] in your outrigger.toml"),
        })
    }
}

/// Holds the tools that are there to what the user's settings say.
pub(crate) fn narrow(inner: &Inner) {
    for tool in inner.config.settings.tool_execution.tool_limits.keys() {
        narrow_one(inner, tool);
    }
}

/// The same for one tool that came later.
pub(crate) fn narrow_one(inner: &Inner, tool: &str) {
    let limits = inner.config.settings.tool_execution.tool_limits.get(tool);
    let Some(limits) = limits else { return };
    if let Err(error) = inner.runtime.narrow(tool, &constraints(limits)) {
        tracing::warn!("[tool_limits.{tool}] {error}");
    }
}
