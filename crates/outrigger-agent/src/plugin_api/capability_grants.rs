//! Who does what tools do, and within what: what agents and plugins are granted, and what the user's settings hold tools to
//! (C11, D6, D7).

use std::collections::BTreeSet;

use outrigger_config::settings::hands::ToolLimits;
use outrigger_plugins::PluginStatus;
use outrigger_protocol::descriptor::{Capability, Constraints, Declared, SandboxProfile};
use outrigger_tools::Grant;
use serde_json::Value;

use crate::state::Inner;

impl Inner {
    /// What an agent was granted; `None`: everything.
    pub(crate) fn grant_of_agent(&self, agent: &str) -> Option<Grant> {
        let list = self.config.settings.hands.capabilities.get(agent)?;
        Some(Grant {
            who: format!("the agent `{agent}`"),
            capabilities: list.iter().copied().collect(),
            how: format!("add it to `{agent}` under [capabilities] in your outrigger.toml"),
        })
    }
}

/// What a plugin was granted, as capabilities: that follows from what its manifest asks for. `None`: everything.
pub(crate) fn grant_of_plugin(plugin: &PluginStatus) -> Option<Grant> {
    let shown = plugin.manifest.as_ref().filter(|shown| shown.declared)?;
    let asks = &shown.manifest.permissions;
    let withheld = |it: Capability| match it {
        Capability::FsRead => asks.files.read.is_empty() && asks.files.write.is_empty(),
        Capability::FsWrite => asks.files.write.is_empty(),
        Capability::Net => asks.network.hosts.is_empty(),
        Capability::Spawn | Capability::Session => asks.client.as_ref().is_some_and(Vec::is_empty),
        Capability::Exec | Capability::Mcp | Capability::User => false,
    };
    let all = Capability::ALL.into_iter();
    Some(Grant {
        who: format!("the plugin `{}`", plugin.id),
        capabilities: all.filter(|it| !withheld(*it)).collect::<BTreeSet<_>>(),
        how: "its manifest has to ask for it, under `permissions`".to_owned(),
    })
}

/// Reads what a plugin's tool declares. The box is that of its process, whatever it says.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn declared(value: Option<Value>, boxed: bool) -> Result<Declared, String> {
    let mut declared: Declared = match value {
        Some(value) => serde_json::from_value(value).map_err(|error| error.to_string())?,
        None => Declared::default(),
    };
    declared.constraints.sandbox_profile = match boxed {
        true => SandboxProfile::Process,
        false => SandboxProfile::NoIsolation,
    };
    Ok(declared)
}

/// Holds the tools that are there to what the user's settings say.
pub(crate) fn narrow(inner: &Inner) {
    for tool in inner.config.settings.hands.tool_limits.keys() {
        narrow_one(inner, tool);
    }
}

/// The same for one tool that came later.
pub(crate) fn narrow_one(inner: &Inner, tool: &str) {
    let limits = inner.config.settings.hands.tool_limits.get(tool);
    let Some(limits) = limits else { return };
    if let Err(error) = inner.runtime.narrow(tool, &constraints(limits)) {
        tracing::warn!("[tool_limits.{tool}] {error}");
    }
}

fn constraints(limits: &ToolLimits) -> Constraints {
    Constraints {
        timeout_ms: limits.timeout_ms,
        max_retries: limits.max_retries.unwrap_or(u32::MAX),
        deterministic_hooks: limits.deterministic_hooks == Some(true),
        allowed_read_roots: limits.allowed_read_roots.clone(),
        allowed_write_roots: limits.allowed_write_roots.clone(),
        ..Constraints::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_plugin_says_of_its_box_does_not_count() {
        let says = json!({"version": "2.0.0", "constraints": {"sandbox_profile": "ReadOnly"}});
        for (boxed, want) in [
            (true, SandboxProfile::Process),
            (false, SandboxProfile::NoIsolation),
        ] {
            let read = declared(Some(says.clone()), boxed).unwrap();
            assert_eq!(read.constraints.sandbox_profile, want);
            assert_eq!(read.version, "2.0.0");
        }
        let error = declared(Some(json!({"constraints": {"timeout": 5}})), true).unwrap_err();
        assert!(error.contains("timeout"), "{error}");
    }
}
