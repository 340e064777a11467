//! A connection to a server, of either kind, and what is said over it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::error::McpError;
use crate::http::Http;
use crate::stdio::Stdio;
use crate::wire;

/// Pages of the list of tools, as in the reference.
const MOST_PAGES: usize = 1000;
/// Tools of one server that are taken over.
const MOST_TOOLS: usize = 1000;

/// A connection.
pub(crate) enum Link {
    Stdio(Stdio),
    Http(Box<Http>),
}

/// What a server says of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
}

/// What it says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    /// It has tools.
    pub(crate) tools: bool,
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
        if let Self::Http(http) = self {
            http.agreed(version);
        }
        self.notify("notifications/initialized").await;
        let info = |key: &str| {
            answer
                .pointer(&format!("/serverInfo/{key}"))
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        Ok(About {
            name: info("name"),
            version: info("version"),
            tools: answer
                .pointer("/capabilities/tools")
                .is_some_and(Value::is_object),
        })
    }

    /// All pages of its list of tools. An entry without a name is left out.
    pub(crate) async fn list(
        &self,
        server: &str,
        wait: Duration,
    ) -> Result<Vec<ToolInfo>, McpError> {
        let wrong = |reason: String| McpError::Answer {
            server: server.to_owned(),
            reason,
        };
        let (mut tools, mut seen) = (Vec::new(), HashSet::new());
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let mut page = self.request("tools/list", &params, wait).await?;
            let Some(Value::Array(list)) = page.get_mut("tools").map(Value::take) else {
                return Err(wrong("tools/list has no list of tools".to_owned()));
            };
            tools.extend(list.into_iter().filter_map(tool));
            if tools.len() > MOST_TOOLS {
                tracing::warn!(
                    "[mcp:{server}] has more than {MOST_TOOLS} tools, the rest is left out"
                );
                tools.truncate(MOST_TOOLS);
                return Ok(tools);
            }
            match page.get("nextCursor") {
                Some(Value::String(cursor)) if !seen.insert(cursor.clone()) => {
                    return Err(wrong(format!("tools/list gives the cursor {cursor} twice")));
                }
                Some(Value::String(cursor)) => params = json!({"cursor": cursor}),
                _ => return Ok(tools),
            }
        }
        Err(wrong(format!(
            "tools/list has more than {MOST_PAGES} pages"
        )))
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
        }
    }

    async fn notify(&self, method: &str) {
        match self {
            Self::Stdio(link) => link.notify(method).await,
            Self::Http(link) => link.notify(method).await,
        }
    }

    /// Ends it in an orderly way, within `grace`.
    pub(crate) async fn close(&self, grace: Duration) {
        match self {
            Self::Stdio(link) => link.close(grace).await,
            Self::Http(link) => link.close(grace).await,
        }
    }

    /// Why it is closed, if it is.
    pub(crate) fn closed(&self) -> Option<McpError> {
        match self {
            Self::Stdio(link) => link.pending().closed(),
            Self::Http(link) => link.pending().closed(),
        }
    }

    /// Told when the server's tools have changed, and when the connection has closed.
    pub(crate) fn news(&self) -> Arc<Notify> {
        match self {
            Self::Stdio(link) => link.pending().news(),
            Self::Http(link) => link.pending().news(),
        }
    }

    /// What it said instead of messages, for an error.
    pub(crate) fn heard(&self) -> String {
        match self {
            Self::Stdio(link) => link.heard(),
            Self::Http(_) => String::new(),
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Stdio(link) => Some(link.pid()),
            Self::Http(_) => None,
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
    Some(ToolInfo {
        name,
        description,
        input_schema: input_schema.unwrap_or_else(|| json!({"type": "object"})),
    })
}
