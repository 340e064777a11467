//! What servers provide besides tools: resources, resource templates, prompts, and instructions.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::error::McpError;
use crate::link::About;
use crate::server::Server;
use crate::servers::McpServers;

/// One resource, template or prompt of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Server.
    pub server: String,
    /// The server's entry, unmodified; an object with a `name`.
    pub entry: Value,
}

/// A server's own usage instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Server.
    pub server: String,
    /// The instructions.
    pub text: String,
    /// Its tools, as the model calls them.
    pub tools: Vec<String>,
}

impl McpServers {
    /// Returns the names of the connected servers with resources, in order.
    #[must_use]
    pub fn resource_servers(&self) -> Vec<String> {
        let has = |server: &Arc<Server>| server.about().is_some_and(|(_, about)| about.resources);
        let mut names: Vec<String> = self
            .all()
            .iter()
            .filter(|server| has(server))
            .map(|server| server.name.clone())
            .collect();
        names.sort();
        names
    }

    /// Returns whether a connected server has resources; `None` if it is not connected.
    #[must_use]
    pub fn has_resources(&self, server: &str) -> Option<bool> {
        let (_, about) = self.find(server).ok()?.about()?;
        Some(about.resources)
    }

    /// Returns the resources of one server, or of all. A server that fails to list them is skipped with a warning,
    /// as in OpenCode.
    pub async fn resources(&self, server: Option<&str>) -> Vec<Listed> {
        self.listed("resources", server, |about| about.resources)
            .await
    }

    /// Like [`Self::resources`], for resource templates.
    pub async fn resource_templates(&self, server: Option<&str>) -> Vec<Listed> {
        self.listed("resourceTemplates", server, |about| about.resources)
            .await
    }

    /// Returns the prompts of all servers.
    pub async fn prompts(&self) -> Vec<Listed> {
        self.listed("prompts", None, |about| about.prompts).await
    }

    async fn listed(
        &self,
        what: &str,
        server: Option<&str>,
        has: fn(&About) -> bool,
    ) -> Vec<Listed> {
        let servers = self.all();
        let asked = servers
            .iter()
            .filter(|known| server.is_none_or(|server| known.name == server))
            .filter_map(|known| Some((known, known.about()?)))
            .filter(|(_, (_, about))| has(about))
            .map(|(known, (link, _))| async move {
                let listed = link.list(&known.name, what, known.call_wait()).await;
                let list = listed.unwrap_or_else(|error| {
                    tracing::warn!("[mcp:{}] cannot list its {what}: {error}", known.name);
                    Vec::new()
                });
                list.into_iter()
                    .filter(|entry| entry["name"].is_string())
                    .map(|entry| Listed {
                        server: known.name.clone(),
                        entry,
                    })
                    .collect::<Vec<_>>()
            });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Reads a resource: `{contents: [...]}`, as sent by the server.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Value, McpError> {
        let params = json!({"uri": uri});
        self.asked(server, "resources/read", &params).await
    }

    /// Expands a prompt: `{messages: [...]}`, as sent by the server.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &Value,
    ) -> Result<Value, McpError> {
        let params = json!({"name": name, "arguments": arguments});
        self.asked(server, "prompts/get", &params).await
    }

    async fn asked(&self, server: &str, method: &str, params: &Value) -> Result<Value, McpError> {
        let server = self.find(server)?;
        let link = server.live().await?;
        match link.request(method, params, server.call_wait()).await {
            Err(McpError::SessionGone { .. }) => {
                let link = server.live().await?;
                link.request(method, params, server.call_wait()).await
            }
            other => other,
        }
    }

    /// Returns the instructions of the connected servers, by name.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instructions> {
        let mut all: Vec<Instructions> = self
            .all()
            .iter()
            .filter_map(|server| {
                let (_, about) = server.about()?;
                Some(Instructions {
                    server: server.name.clone(),
                    text: about.instructions?,
                    tools: server
                        .tools()
                        .iter()
                        .map(|tool| crate::tool_name(&server.name, &tool.name))
                        .collect(),
                })
            })
            .collect();
        all.sort_by(|a, b| a.server.cmp(&b.server));
        all
    }
}
