//! Grants of plugins, and declarations of their tools (D6).

use std::collections::BTreeSet;

use outrigger_config::settings::tool_execution::{ToolExecution, ToolLimits};
use outrigger_plugins::PluginStatus;
use outrigger_protocol::descriptor::{Capability, Constraints, Declared, SandboxProfile};
use outrigger_tools::{Grant, ToolError, ToolRuntime};
use serde_json::Value;

/// Returns a plugin's grants as capabilities, derived from what its manifest requests. `None`: everything.
#[must_use]
pub fn grant_of_plugin(plugin: &PluginStatus) -> Option<Grant> {
    let shown = plugin.manifest.as_ref().filter(|shown| shown.declared)?;
    let asks = &shown.manifest.permissions;
    let withheld = |it: Capability| match it {
        Capability::FsRead => asks.files.read.is_empty() && asks.files.write.is_empty(),
        Capability::FsWrite => asks.files.write.is_empty(),
        Capability::Net => asks.network.hosts.is_empty(),
        Capability::Spawn | Capability::Session => asks.client.as_ref().is_some_and(Vec::is_empty),
        Capability::Exec | Capability::Mcp | Capability::User => false,
        // A plugin does not drive Outrigger's browser.
        Capability::BrowserRead | Capability::BrowserWrite => true,
    };
    let all = Capability::ALL.into_iter();
    Some(Grant {
        who: format!("the plugin `{}`", plugin.id),
        capabilities: all.filter(|it| !withheld(*it)).collect::<BTreeSet<_>>(),
        how: "its manifest must request it under `permissions`".to_owned(),
    })
}

/// Reads what a plugin's tool declares. The sandbox is that of its process, whatever it says. It has no contract: a connector of
/// the user's would carry out its calls as shell commands and changes of files, which the user's rules and guards know under the
/// names of the bundled tools only. Where a rule routes what it needs elsewhere, the call is refused, as for any tool without one.
///
/// # Errors
/// What is wrong with it.
pub fn declared(value: Option<Value>, is_sandboxed: bool) -> Result<Declared, String> {
    let mut declared: Declared = match value {
        Some(value) => serde_json::from_value(value).map_err(|error| error.to_string())?,
        None => Declared::default(),
    };
    declared.contract = None;
    declared.constraints.sandbox_profile = if is_sandboxed {
        SandboxProfile::Process
    } else {
        SandboxProfile::NoIsolation
    };
    Ok(declared)
}

/// Returns what the user's settings grant agents. Agents that they do not name are granted everything.
pub fn of_agents<'a>(
    settings: &ToolExecution,
    agents: impl Iterator<Item = &'a String>,
) -> Vec<Grant> {
    let grant = |agent: &String| {
        let granted = settings.capabilities.get(agent)?;
        Some(Grant {
            who: format!("the agent `{agent}`"),
            capabilities: granted.iter().copied().collect(),
            how: format!("add it to `{agent}` under [capabilities] in your outrigger.toml"),
        })
    };
    agents.filter_map(grant).collect()
}

/// Limits the registered tools to what the user's settings allow, and warns of agents in them that do not exist.
pub fn narrow_all(
    runtime: &ToolRuntime,
    settings: &ToolExecution,
    is_agent: impl Fn(&str) -> bool,
) {
    for tool in settings.tool_limits.keys() {
        narrow(runtime, tool, settings);
    }
    for agent in settings.capabilities.keys().filter(|it| !is_agent(it)) {
        tracing::warn!("[capabilities] {agent}: there is no agent of this name");
    }
}

/// Limits a tool to what the user's settings allow. A tool that cannot be limited is removed.
pub fn narrow(runtime: &ToolRuntime, tool: &str, settings: &ToolExecution) {
    let Some(limits) = settings.tool_limits.get(tool) else {
        return;
    };
    match runtime.narrow(tool, &constraints(limits)) {
        Ok(()) => {}
        // It may be registered later, by a plugin or a server.
        Err(ToolError::NotFound { .. }) => tracing::warn!(
            "[tool_limits.{tool}] there is no tool `{tool}` so far; `outrigger tool list` shows the tools"
        ),
        Err(error) => {
            runtime.retain(|it| it.name != tool);
            tracing::warn!(
                "[tool_limits.{tool}] the tool is skipped: cannot apply the limit: {error}"
            );
        }
    }
}

/// Returns limits of the user's settings as constraints of a tool.
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
    fn a_plugins_tool_has_no_contract() {
        let says = json!({"contract": "exec", "capabilities": ["process.exec"]});
        let read = declared(Some(says), true).unwrap();
        assert_eq!(read.contract, None);
        assert!(read.capabilities.contains(&Capability::Exec));
    }

    #[test]
    fn what_a_plugin_says_of_its_sandbox_does_not_count() {
        let says = json!({"version": "2.0.0", "constraints": {"sandbox_profile": "ReadOnly"}});
        for (is_sandboxed, want) in [
            (true, SandboxProfile::Process),
            (false, SandboxProfile::NoIsolation),
        ] {
            let read = declared(Some(says.clone()), is_sandboxed).unwrap();
            assert_eq!(read.constraints.sandbox_profile, want);
            assert_eq!(read.version, "2.0.0");
        }
        let error = declared(Some(json!({"constraints": {"timeout": 5}})), true).unwrap_err();
        assert!(error.contains("timeout"), "{error}");
    }
}
