//! Connectors: providers that fulfil a contract remotely (C11), either a bridge or a plugin that executes (C6).

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use outrigger_bridge::Remote;
use outrigger_config::Loaded;
use outrigger_config::settings::tool_execution::Connector;
use outrigger_plugins::PluginToolEntry;
use outrigger_protocol::tool::ToolOutput;
use outrigger_tools::routes::{Invocation, Provider};
use outrigger_tools::{ToolContext, ToolError};
use serde_json::json;

use crate::plugin_api::connector_hooks::Notifying;
use crate::plugin_api::plugin_tools::{call, error_of};
use crate::state::{AgentState, PluginServices};

/// Returns the provider that `[connectors.NAME]` defines.
pub(crate) fn provider(
    state: &Arc<AgentState>,
    name: &str,
    connector: &Connector,
    env: &BTreeMap<String, String>,
) -> Arc<dyn Provider> {
    let owner = Arc::downgrade(state);
    if let Some(plugin) = &connector.plugin {
        let provider = Executor {
            owner: Weak::clone(&owner),
            plugin: plugin.clone(),
            name: name.to_owned(),
        };
        return notifying(owner, name, provider);
    }
    match remote(name, connector, env) {
        Ok(remote) => notifying(owner, name, remote),
        Err(why) => {
            tracing::warn!("[connectors.{name}] {why}");
            Arc::new(Broken(format!(
                "The connector `{name}` cannot be used: {why}"
            )))
        }
    }
}

fn notifying(
    owner: Weak<AgentState>,
    name: &str,
    provider: impl Provider + 'static,
) -> Arc<dyn Provider> {
    Arc::new(Notifying {
        owner,
        name: name.to_owned(),
        provider,
    })
}

fn remote(
    name: &str,
    connector: &Connector,
    env: &BTreeMap<String, String>,
) -> Result<Remote, String> {
    let token = match (&connector.token_env, &connector.token_file) {
        (Some(variable), _) => env
            .get(variable)
            .cloned()
            .ok_or_else(|| format!("the variable {variable} is not set"))?,
        (None, Some(file)) => {
            outrigger_files::read_to_string(std::path::Path::new(file), outrigger_files::SETTINGS)
                .map_err(|error| format!("the token cannot be read from {file}: {error}"))?
        }
        (None, None) => return Err("it has neither token_env nor token_file".to_owned()),
    };
    let token = token.trim().to_owned();
    Remote::new(name, &connector.url, token, connector.allow_plain)
        .map_err(|error| format!("{error}; {}", error.hint()))
}

/// An unusable connector: calls bound to it fail and do not fall back to this machine.
struct Broken(String);

impl Provider for Broken {
    fn invoke<'a>(
        &'a self,
        _call: Invocation<'a>,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::failed(self.0.clone())) })
    }
}

/// A plugin of the user's that executes: its tool with the connector's name is called with the contract and the arguments. Looked up
/// at each call, since plugins start and stop.
struct Executor {
    owner: Weak<AgentState>,
    plugin: String,
    name: String,
}

impl Executor {
    fn tool(&self, plugins: &PluginServices) -> Result<PluginToolEntry, String> {
        let (plugin, name) = (&self.plugin, &self.name);
        let source = format!("plugin:{plugin}");
        let statuses = plugins.host.list();
        let status = statuses.iter().find(|status| status.id == *plugin);
        let manifest = status.and_then(|status| status.manifest.as_ref());
        let declared = manifest.filter(|shown| shown.declared);
        if let Some(shown) = declared.filter(|it| !it.manifest.kind.brings_connectors()) {
            return Err(format!(
                "the manifest of the plugin {plugin} says that it is a \"{}\"; only a connector or a bridge can execute calls",
                shown.manifest.kind.name()
            ));
        }
        if declared.is_some_and(|shown| !shown.manifest.provides.connectors.contains(name)) {
            return Err(format!(
                "the manifest of the plugin {plugin} does not name it under `provides.connectors`"
            ));
        }
        let mut tools = plugins.host.tools();
        tools.retain(|entry| entry.spec.source == source && entry.spec.name == *name);
        let is_of_project = !tools.is_empty() && tools.iter().all(|entry| entry.is_local);
        tools
            .into_iter()
            .find(|entry| !entry.is_local)
            .ok_or_else(|| match status {
                _ if is_of_project => format!(
                    "the plugin {plugin} is the project's, and only a plugin of yours can execute calls; name it in your own opencode.json to make it yours"
                ),
                None => format!("there is no plugin {plugin}; `outrigger plugin list` shows the plugins"),
                Some(status) => format!(
                    "the plugin {plugin} ({}) provides no tool `{name}`, which the connector would call",
                    status.stage
                ),
            })
    }
}

impl Provider for Executor {
    fn invoke<'a>(
        &'a self,
        invocation: Invocation<'a>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let state = self.owner.upgrade().ok_or(ToolError::Cancelled)?;
            let entry = self.tool(&state.plugins).map_err(|why| {
                ToolError::Unavailable(format!(
                    "The connector `{}` cannot be used: {why}",
                    self.name
                ))
            })?;
            let input = json!({"contract": invocation.contract, "input": invocation.input});
            let answer = call(&self.owner, &entry.runner, input, ctx).await;
            answer.map_err(|error| error_of(error, ctx))
        })
    }
}

/// Returns whether a plugin's tool is called for a connector and therefore not offered to the model. The user's connectors call no
/// plugin of a project, even one of the same name.
pub(crate) fn is_executor(config: &Loaded, entry: &PluginToolEntry) -> bool {
    let connector = config
        .settings
        .tool_execution
        .connectors
        .get(&entry.spec.name);
    let plugin = connector.and_then(|connector| connector.plugin.as_deref());
    !entry.is_local && plugin.is_some() && entry.spec.source.strip_prefix("plugin:") == plugin
}
