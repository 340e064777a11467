//! A connection to a server, of either kind, and what is said over it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::error::McpError;
use crate::transport::http::Http;
use crate::transport::sse::SseLink;
use crate::transport::stdio::Stdio;
use crate::wire;

/// Pages of the list of tools, as in OpenCode.
const MAX_PAGES: usize = 1000;
/// Tools, resources or prompts of one server that are taken over.
const MAX_ENTRIES: usize = 1000;
/// Characters of a server's instructions; they go with every request to the model.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// A connection.
pub(crate) enum Link {
    Stdio(Stdio),
    Http(Box<Http>),
    Sse(Box<SseLink>),
}

/// What a server says of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
}

/// What it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    /// It has tools.
    pub(crate) tools: bool,
    /// It has resources.
    pub(crate) resources: bool,
    /// It has prompts.
    pub(crate) prompts: bool,
    /// How to use it, for the system prompt.
    pub(crate) instructions: Option<String>,
}

impl Link {
    /// The first exchange.
    pub(crate) async fn initialize(&self, server: &str, wait: Duration) -> Result<About, McpError> {
        let params = json!({
            "protocolVersion": wire::VERSION,
            "capabilities": {},
            "clientInfo": {"name": "outrigger", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = self.request("initialize", &params, wait).await?;
        // Whatever version it names: the few messages that we use are the same in all of them.
        let Some(version) = answer.get("protocolVersion").and_then(Value::as_str) else {
            return Err(McpError::Answer {
                server: server.to_owned(),
                reason: "initialize names no protocolVersion".to_owned(),
            });
        };
        match self {
            Self::Http(http) => http.agreed(version),
            Self::Sse(sse) => sse.agreed(version),
            Self::Stdio(_) => {}
        }
        self.notify("notifications/initialized").await;
        let info = |key: &str| {
            answer
                .pointer(&format!("/serverInfo/{key}"))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let has = |key: &str| {
            answer
                .pointer(&format!("/capabilities/{key}"))
                .is_some_and(Value::is_object)
        };
        let instructions = answer["instructions"].as_str().map(str::trim);
        Ok(About {
            name: info("name"),
            version: info("version"),
            tools: has("tools"),
            resources: has("resources"),
            prompts: has("prompts"),
            instructions: instructions
                .filter(|text| !text.is_empty())
                .map(|text| text.chars().take(MAX_INSTRUCTIONS).collect()),
        })
    }

    /// All pages of its list of tools. An entry without a name is left out.
    pub(crate) async fn tools(
        &self,
        server: &str,
        wait: Duration,
    ) -> Result<Vec<ToolInfo>, McpError> {
        let list = self.list(server, "tools", wait).await?;
        Ok(list.into_iter().filter_map(tool).collect())
    }

    /// All pages of `tools`, `resources`, `resourceTemplates` or `prompts`.
    pub(crate) async fn list(
        &self,
        server: &str,
        what: &str,
        wait: Duration,
    ) -> Result<Vec<Value>, McpError> {
        let method = match what {
            "resourceTemplates" => "resources/templates/list".to_owned(),
            other => format!("{other}/list"),
        };
        let wrong = |reason: String| McpError::Answer {
            server: server.to_owned(),
            reason,
        };
        let (mut entries, mut seen) = (Vec::new(), HashSet::new());
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.request(&method, &params, wait).await?;
            let Some(Value::Array(list)) = page.get_mut(what).map(Value::take) else {
                return Err(wrong(format!("{method} has no list of {what}")));
            };
            entries.extend(list);
            if entries.len() > MAX_ENTRIES {
                tracing::warn!(
                    "[mcp:{server}] has more than {MAX_ENTRIES} {what}, the rest is left out"
                );
                entries.truncate(MAX_ENTRIES);
                return Ok(entries);
            }
            match page.get("nextCursor") {
                Some(Value::String(cursor)) if !seen.insert(cursor.clone()) => {
                    return Err(wrong(format!("{method} gives the cursor {cursor} twice")));
                }
                Some(Value::String(cursor)) => params = json!({"cursor": cursor}),
                _ => return Ok(entries),
            }
        }
        Err(wrong(format!("{method} has more than {MAX_PAGES} pages")))
    }

    /// Makes a request; see [`Stdio::request`].
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        wait: Duration,
    ) -> Result<Value, McpError> {
        match self {
            Self::Stdio(link) => link.request(method, params, wait).await,
            Self::Http(link) => link.request(method, params, wait).await,
            Self::Sse(link) => link.request(method, params, wait).await,
        }
    }

    async fn notify(&self, method: &str) {
        match self {
            Self::Stdio(link) => link.notify(method).await,
            Self::Http(link) => link.notify(method).await,
            Self::Sse(link) => link.notify(method).await,
        }
    }

    /// Ends it in an orderly way, within `grace`.
    pub(crate) async fn close(&self, grace: Duration) {
        match self {
            Self::Stdio(link) => link.close(grace).await,
            Self::Http(link) => link.close(grace).await,
            Self::Sse(link) => link.close(),
        }
    }

    /// Why it is closed, if it is.
    pub(crate) fn closed(&self) -> Option<McpError> {
        match self {
            Self::Stdio(link) => link.pending().closed(),
            Self::Http(link) => link.pending().closed(),
            Self::Sse(link) => link.pending().closed(),
        }
    }

    /// Notified when the server's tools have changed, and when the connection has closed.
    pub(crate) fn news(&self) -> Arc<Notify> {
        match self {
            Self::Stdio(link) => link.pending().news(),
            Self::Http(link) => link.pending().news(),
            Self::Sse(link) => link.pending().news(),
        }
    }

    /// What it said instead of messages, for an error.
    pub(crate) fn heard(&self) -> String {
        match self {
            Self::Stdio(link) => link.heard(),
            Self::Http(_) | Self::Sse(_) => String::new(),
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Stdio(link) => Some(link.pid()),
            Self::Http(_) | Self::Sse(_) => None,
        }
    }
}

fn tool(mut entry: Value) -> Option<ToolInfo> {
    let name = entry
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())?
        .to_owned();
    let description = entry
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let input_schema = entry
        .get_mut("inputSchema")
        .map(Value::take)
        .filter(Value::is_object);
    let output_schema = entry
        .get_mut("outputSchema")
        .map(Value::take)
        .filter(Value::is_object);
    Some(ToolInfo {
        name,
        description,
        output_schema,
        input_schema: input_schema.unwrap_or_else(|| json!({"type": "object"})),
    })
}
