//! A connection to a server, of either kind, and the exchanges over it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::error::McpError;
use crate::requests::Asks;
use crate::transport::http::Http;
use crate::transport::pending::Outgoing;
use crate::transport::sse::SseLink;
use crate::transport::stdio::Stdio;
use crate::wire;

/// Maximum pages of the list of tools, as in OpenCode.
const MAX_PAGES: usize = 1000;
/// Maximum number of tools, resources or prompts of one server.
const MAX_ENTRIES: usize = 1000;
/// Maximum characters of a server's instructions; they are part of every request to the model.
const MAX_INSTRUCTIONS: usize = 16 * 1024;
/// Maximum characters of a tool's description, and bytes of each of its schemas: a limit for a flooding server, not for long
/// texts.
const MAX_DESCRIPTION: usize = 32 * 1024;
const MAX_SCHEMA: usize = 512 * 1024;
/// Maximum characters of a tool's name. Model providers accept 64 to 128.
const MAX_NAME: usize = 256;
/// Maximum bytes of the entries of one list.
const MAX_LISTED: usize = 16 * 1024 * 1024;

/// A connection.
pub(crate) enum Link {
    Stdio(Stdio),
    Http(Box<Http>),
    Sse(Box<SseLink>),
}

/// A server's description of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolInfo {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
}

/// A server's capabilities.
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
    /// Usage instructions for the system prompt.
    pub(crate) instructions: Option<String>,
}

impl Link {
    /// Performs the first exchange.
    pub(crate) async fn initialize(&self, server: &str, wait: Duration) -> Result<About, McpError> {
        let answer = self.request("initialize", &wire::hello(), wait).await?;
        // Any version is accepted: the few messages that we use are the same in all of them.
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
        if let Self::Http(http) = self {
            http.listen();
        }
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
                .map(|text| cut(server, "its instructions", text, MAX_INSTRUCTIONS)),
        })
    }

    /// Fetches all pages of its list of tools. An entry without a name is skipped.
    pub(crate) async fn tools(
        &self,
        server: &str,
        wait: Duration,
    ) -> Result<Vec<ToolInfo>, McpError> {
        let list = self.list(server, "tools", wait).await?;
        let read = |entry| tool(server, entry);
        Ok(list.into_iter().filter_map(read).collect())
    }

    /// Fetches all pages of `tools`, `resources`, `resourceTemplates` or `prompts`.
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
        let mut bytes = 0_usize;
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.request(&method, &params, wait).await?;
            let Some(Value::Array(list)) = page.get_mut(what).map(Value::take) else {
                return Err(wrong(format!("{method} has no list of {what}")));
            };
            for entry in list {
                bytes = bytes.saturating_add(entry.to_string().len());
                if entries.len() == MAX_ENTRIES || bytes > MAX_LISTED {
                    tracing::warn!(
                        "[mcp:{server}] has more than {MAX_ENTRIES} {what}, or more than {} MiB of them; the rest is skipped",
                        MAX_LISTED >> 20
                    );
                    return Ok(entries);
                }
                entries.push(entry);
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

    /// Sends a request; see [`Stdio::request`].
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        wait: Duration,
    ) -> Result<Value, McpError> {
        self.send(Outgoing {
            method,
            params,
            wait,
            asks: None,
        })
        .await
    }

    /// Calls a tool. Requests of the server in the meantime go to `asks`.
    pub(crate) async fn call(
        &self,
        params: &Value,
        wait: Duration,
        asks: &Asks,
    ) -> Result<Value, McpError> {
        self.send(Outgoing {
            method: "tools/call",
            params,
            wait,
            asks: Some(asks),
        })
        .await
    }

    async fn send(&self, call: Outgoing<'_>) -> Result<Value, McpError> {
        match self {
            Self::Stdio(link) => link.request(call).await,
            Self::Http(link) => link.request(call).await,
            Self::Sse(link) => link.request(call).await,
        }
    }

    async fn notify(&self, method: &str) {
        match self {
            Self::Stdio(link) => link.notify(method).await,
            Self::Http(link) => link.notify(method).await,
            Self::Sse(link) => link.notify(method).await,
        }
    }

    /// Closes it in an orderly way, within `grace`.
    pub(crate) async fn close(&self, grace: Duration) {
        match self {
            Self::Stdio(link) => link.close(grace).await,
            Self::Http(link) => link.close(grace).await,
            Self::Sse(link) => link.close(),
        }
    }

    /// Returns why it is closed, if it is.
    pub(crate) fn closed(&self) -> Option<McpError> {
        match self {
            Self::Stdio(link) => link.pending().closed(),
            Self::Http(link) => link.pending().closed(),
            Self::Sse(link) => link.pending().closed(),
        }
    }

    /// Returns a signal for changes of the server's tools and the end of the connection.
    pub(crate) fn news(&self) -> Arc<Notify> {
        match self {
            Self::Stdio(link) => link.pending().news(),
            Self::Http(link) => link.pending().news(),
            Self::Sse(link) => link.pending().news(),
        }
    }

    /// Returns its output that was not a message, for an error.
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

/// Converts a listed tool, within the limits for models.
fn tool(server: &str, mut entry: Value) -> Option<ToolInfo> {
    let name = entry
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())?
        .to_owned();
    if name.chars().count() > MAX_NAME {
        tracing::warn!(
            "[mcp:{server}] a tool is skipped: its name has more than {MAX_NAME} characters"
        );
        return None;
    }
    let description = entry.get("description").and_then(Value::as_str);
    let whose = format!("the description of its tool {name}");
    let description = cut(
        server,
        &whose,
        description.unwrap_or_default(),
        MAX_DESCRIPTION,
    );
    let mut schema = |key: &str| {
        let schema = entry
            .get_mut(key)
            .map(Value::take)
            .filter(Value::is_object)?;
        let bytes = schema.to_string().len();
        if bytes <= MAX_SCHEMA {
            return Some(schema);
        }
        tracing::warn!(
            "[mcp:{server}] the `{key}` of its tool {name} is skipped: it has {bytes} bytes, and {MAX_SCHEMA} are taken"
        );
        None
    };
    let (input_schema, output_schema) = (schema("inputSchema"), schema("outputSchema"));
    Some(ToolInfo {
        name,
        description,
        output_schema,
        input_schema: input_schema.unwrap_or_else(|| json!({"type": "object"})),
    })
}

/// Truncates a text for the model, with a mark.
fn cut(server: &str, whose: &str, text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let all = text.chars().count();
    tracing::warn!("[mcp:{server}] {whose} is cut: {most} of {all} characters are taken");
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}\n[cut here: {most} of {all} characters]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_of_a_tool_is_bounded() {
        let long = "é".repeat(MAX_DESCRIPTION + 5);
        let tool_of = |description: &str, schema: Value| {
            tool(
                "m",
                json!({"name": "t", "description": description, "inputSchema": schema}),
            )
        };
        let taken = tool_of(&long, json!({"type": "object", "properties": {"a": {}}})).unwrap();
        let (kept, mark) = taken.description.split_at(2 * MAX_DESCRIPTION);
        assert!(kept.chars().all(|c| c == 'é'));
        assert_eq!(mark, "\n[cut here: 32768 of 32773 characters]");
        assert_eq!(taken.input_schema["properties"], json!({"a": {}}));
        let whole = "é".repeat(MAX_DESCRIPTION);
        assert_eq!(tool_of(&whole, json!({})).unwrap().description, whole);
        let huge = json!({"type": "object", "title": "x".repeat(MAX_SCHEMA)});
        let taken = tool_of("", huge).unwrap();
        assert_eq!(taken.input_schema, json!({"type": "object"}));
        assert_eq!(tool("m", json!({"name": "x".repeat(MAX_NAME + 1)})), None);
    }
}
