//! Registers the tools of all servers in the runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outrigger_protocol::model::ToolOffer;
use outrigger_protocol::permission_names::refused_name;
use outrigger_protocol::tool::ToolSpec;
use outrigger_tools::ToolError;
use outrigger_tools::builtin::is_bundled;

use crate::host::McpHost;
use crate::tool::{McpTool, SOURCE};
use crate::{resources, skill_servers};

/// Returns whether a name belongs to a tool or permission of our own, whether the tool is registered now or not: rules and questions about
/// it mean ours. A server's tool may replace a plugin's tool of another name, as in OpenCode.
pub(crate) fn is_ours(name: &str) -> bool {
    is_bundled(name) || refused_name(name).is_some() || resources::names().any(|ours| ours == name)
}

/// Returns whether a tool belongs to an MCP server.
#[must_use]
pub fn is_mcp(spec: &ToolSpec) -> bool {
    spec.source.starts_with(SOURCE)
        || spec.source == resources::RESOURCES
        || skill_servers::is_of_skill(spec)
}

/// Returns the offer to the model: hooks are not called for these tools, as in OpenCode.
#[must_use]
pub fn offer(spec: &ToolSpec) -> ToolOffer {
    ToolOffer {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.input_schema.clone(),
    }
}

/// Registers the current tools of the servers, and removes those that no longer exist.
pub fn register(host: &Arc<dyn McpHost>) {
    resources::register(host);
    let mut tools: Vec<McpTool> = host.mcp().tools().into_iter().map(McpTool::new).collect();
    tools.retain(|tool| {
        let is_ours = is_ours(&tool.spec.name);
        if is_ours {
            tracing::warn!(
                "[{}] its tool {} is skipped: Outrigger has a tool of that name; rename the server to use it",
                tool.spec.source,
                tool.spec.name
            );
        }
        !is_ours
    });
    leave_to_user(&**host, &mut tools);
    let shared = shared(
        tools
            .iter()
            .map(|tool| (&*tool.spec.name, &*tool.spec.source)),
    );
    tools.retain(|tool| !shared.contains_key(&tool.spec.name));
    for (name, sources) in shared {
        tracing::warn!(
            "[mcp] the tool {name} is skipped: {} both have a tool of that name; rename one of the servers to \
             use both",
            sources.join(" and ")
        );
    }
    let of_servers = |spec: &&ToolSpec| spec.source.starts_with(SOURCE);
    for old in host.runtime().specs().iter().filter(of_servers) {
        if !tools
            .iter()
            .any(|tool| tool.spec.name == old.name && tool.spec.source == old.source)
        {
            host.runtime().remove_source(&old.source);
        }
    }
    for tool in tools {
        let source = host.runtime().spec(&tool.spec.name).map(|spec| spec.source);
        if let Some(other) = source.filter(|source| *source != tool.spec.source) {
            tracing::warn!(
                "[{}] its tool {} replaces that of {other}",
                tool.spec.source,
                tool.spec.name
            );
        }
        register_one(&**host, tool);
    }
}

/// Removes tools of the project's servers whose names tools of the user's plugins and servers have, or had since the program started:
/// the user's rules for those would be for the project's. Keeps the names of the user's servers.
fn leave_to_user(host: &dyn McpHost, tools: &mut Vec<McpTool>) {
    let mut of_project: BTreeMap<String, bool> = BTreeMap::new();
    for tool in tools.iter() {
        let server = &tool.tool.server;
        let is_of_project = *of_project
            .entry(server.clone())
            .or_insert_with(|| host.is_of_project(server));
        if !is_of_project {
            host.runtime().keep_for_user(&tool.spec.name);
        }
    }
    tools.retain(|tool| {
        let is_kept = of_project.get(&tool.tool.server) == Some(&true)
            && host.runtime().is_kept_for_user(&tool.spec.name);
        if is_kept {
            tracing::warn!(
                "[{}] its tool {} is skipped: a plugin or an MCP server of yours has a tool of that name, which a project's \
                 server cannot replace; rename the server to use it",
                tool.spec.source,
                tool.spec.name
            );
        }
        !is_kept
    });
}

/// Returns names that tools of several servers share (`tool` of `a_b`, `b_tool` of `a`). Whichever was registered would act for the other,
/// under the user's rules for that one.
fn shared<'a>(tools: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, Vec<String>> {
    let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, source) in tools {
        by_name.entry(name).or_default().insert(source);
    }
    by_name.retain(|_, sources| sources.len() > 1);
    let owned = |sources: BTreeSet<&str>| sources.into_iter().map(str::to_owned).collect();
    by_name
        .into_iter()
        .map(|(name, sources)| (name.to_owned(), owned(sources)))
        .collect()
}

/// Registers a tool with the usable parts of its schemas.
fn register_one(host: &dyn McpHost, tool: McpTool) {
    let unshaped = McpTool {
        output: None,
        ..tool.clone()
    };
    let lax = unshaped.lax();
    let is_checked = tool.output.is_some();
    let mut ways = vec![(tool, "")];
    if is_checked {
        ways.push((unshaped, "its answers are not checked"));
    }
    ways.push((lax, "its arguments are not checked"));
    let mut failed: Option<ToolError> = None;
    for (tool, without) in ways {
        let (name, source) = (tool.spec.name.clone(), tool.spec.source.clone());
        match host.runtime().register(Arc::new(tool)) {
            Ok(()) => {
                if let Some(error) = failed {
                    tracing::warn!("[{source}] {error}; {without}");
                }
                host.registered(&name);
                return;
            }
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        tracing::warn!("[mcp] {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_two_servers_is_neithers() {
        let tools = [
            ("a_b_tool", "mcp:a_b"),
            ("a_b_other", "mcp:a_b"),
            ("a_b_tool", "mcp:a"),
            ("a_b_other", "mcp:a_b"),
        ];
        let shared = shared(tools.into_iter());
        let want = vec!["mcp:a".to_owned(), "mcp:a_b".to_owned()];
        assert_eq!(shared, BTreeMap::from([("a_b_tool".to_owned(), want)]));
    }

    #[test]
    fn what_may_be_spelled_together_is_ours() {
        for (name, want) in [
            ("apply_patch", true),
            ("read_mcp_resource", true),
            ("doom_loop", true),
            ("bash", true),
            ("apply_patches", false),
            ("notes_read", false),
        ] {
            assert_eq!(is_ours(name), want, "{name}");
        }
    }
}
