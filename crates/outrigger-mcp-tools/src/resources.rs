//! The three tools for MCP resources, offered while a connected server has any (names, parameters and output are
//! OpenCode's).

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use outrigger_mcp::{Listed, McpServers};
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_tools::{PermissionAsk, Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use crate::attach::{self, READ_RESOURCE};
use crate::contents::{Piece, pieces};
use crate::host::McpHost;
use crate::tool::SOURCE;

/// The source of the tools; no server has this name, since its tools' source contains a colon.
pub(crate) const RESOURCES: &str = "mcp";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Templates,
    Read,
}

impl Kind {
    const ALL: [Self; 3] = [Self::List, Self::Templates, Self::Read];

    fn name(self) -> &'static str {
        match self {
            Self::List => "list_mcp_resources",
            Self::Templates => "list_mcp_resource_templates",
            Self::Read => READ_RESOURCE,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::List => {
                "Lists what the connected MCP servers offer to be read: files, schemas, records and the like, each with its server and URI."
            }
            Self::Templates => {
                "Lists the URI templates of the connected MCP servers. Fill in a template's variables and read the result with read_mcp_resource."
            }
            Self::Read => {
                "Reads one resource of an MCP server. The URI is the server's own name for it and need not be the address of a file."
            }
        }
    }

    fn parameters(self) -> Value {
        match self {
            Self::List | Self::Templates => json!({
                "type": "object",
                "properties": {"server": {
                    "type": "string",
                    "description": "Server to list; without it, every connected one",
                }},
                "additionalProperties": false,
            }),
            Self::Read => json!({
                "type": "object",
                "properties": {
                    "server": {"type": "string", "description": "Server, as list_mcp_resources names it"},
                    "uri": {"type": "string", "description": "URI, exactly as list_mcp_resources gives it"},
                },
                "required": ["server", "uri"],
                "additionalProperties": false,
            }),
        }
    }
}

/// Returns the names of the tools.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.into_iter().map(Kind::name)
}

struct ResourceTool {
    kind: Kind,
    spec: ToolSpec,
    // Invalid arguments are reported in OpenCode's words, so no schema reports them first.
    arguments: Value,
    owner: Weak<dyn McpHost>,
}

/// Registers the tools while they are useful, otherwise removes them.
pub(crate) fn register(host: &Arc<dyn McpHost>) {
    let wanted = !host.mcp().resource_servers().is_empty();
    let there = host.runtime().spec(Kind::List.name()).is_some();
    if wanted == there {
        return;
    }
    if !wanted {
        host.runtime().remove_source(RESOURCES);
        return;
    }
    for kind in Kind::ALL {
        let tool = ResourceTool {
            kind,
            spec: ToolSpec {
                name: kind.name().to_owned(),
                description: kind.description().to_owned(),
                input_schema: kind.parameters(),
                read_only: false,
                hidden: false,
                source: RESOURCES.to_owned(),
            },
            arguments: json!({"type": "object"}),
            owner: Arc::downgrade(host),
        };
        if let Err(error) = host.runtime().register(Arc::new(tool)) {
            tracing::warn!("[mcp] {error}");
        }
    }
}

fn text<'a>(input: &'a Value, key: &str) -> Result<Option<&'a str>, ToolError> {
    match &input[key] {
        Value::Null => Ok(None),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(ToolError::failed(format!("{key} must be a string"))),
    }
}

fn required<'a>(input: &'a Value, key: &str) -> Result<&'a str, ToolError> {
    text(input, key)?.ok_or_else(|| ToolError::failed(format!("{key} is required")))
}

/// Returns the servers to list.
fn servers(mcp: &McpServers, asked: Option<&str>) -> Result<Vec<String>, ToolError> {
    let all = mcp.resource_servers();
    let Some(asked) = asked.filter(|asked| !all.iter().any(|server| server == asked)) else {
        return Ok(all);
    };
    let mut message = format!("MCP server \"{asked}\" does not support resources");
    if !all.is_empty() {
        message.push_str(&format!(". Available resource servers: {}", all.join(", ")));
    }
    Err(ToolError::failed(message))
}

impl ResourceTool {
    fn host(&self) -> Result<Arc<dyn McpHost>, ToolError> {
        self.owner.upgrade().ok_or(ToolError::Cancelled)
    }

    async fn list(&self, host: &dyn McpHost, input: &Value) -> Result<ToolOutput, ToolError> {
        let server = text(input, "server")?;
        let all = servers(host.mcp(), server)?;
        let (mut list, key, sort, title) = match self.kind {
            Kind::Templates => (
                host.mcp().resource_templates(server).await,
                "resourceTemplates",
                "uriTemplate",
                "MCP resource templates",
            ),
            _ => (
                host.mcp().resources(server).await,
                "resources",
                "uri",
                "MCP resources",
            ),
        };
        let order = |listed: &Listed| {
            let text = |key: &str| listed.entry[key].as_str().unwrap_or_default().to_owned();
            (listed.server.clone(), text("name"), text(sort))
        };
        list.sort_by_key(order);
        let count = list.len();
        let entries: Vec<Value> = list.into_iter().map(named).collect();
        let mut metadata = json!({"count": count, "servers": all});
        if let Some(server) = server {
            metadata["server"] = server.into();
        }
        Ok(ToolOutput {
            title: match server {
                Some(server) => format!("{title}: {server}"),
                None => title.to_owned(),
            },
            output: serde_json::to_string_pretty(&json!({key: entries})).unwrap_or_default(),
            metadata,
            attachments: None,
        })
    }

    async fn read_one(&self, host: &dyn McpHost, input: &Value) -> Result<ToolOutput, ToolError> {
        let (server, uri) = (required(input, "server")?, required(input, "uri")?);
        let answer = host
            .mcp()
            .read_resource(server, uri)
            .await
            .map_err(|error| {
                ToolError::failed(format!(
                    "Failed to read MCP resource: {server}/{uri}: {error}"
                ))
            })?;
        let all = pieces(&answer, uri);
        let (mut texts, mut attachments) = (Vec::new(), Vec::new());
        let contents = all.len();
        for piece in all {
            match piece {
                Piece::Text { uri, mime, text } => {
                    texts.push(format!("Resource: {uri}\nMIME: {mime}\n{text}"));
                }
                Piece::File { uri, mime, url } => {
                    texts.push(format!("[Binary MCP resource attached: {uri} ({mime})]"));
                    attachments
                        .push(json!({"type": "file", "mime": mime, "url": url, "filename": uri}));
                }
                Piece::Left(note) => texts.push(note),
            }
        }
        let output = texts.join("\n\n");
        Ok(ToolOutput {
            title: format!("MCP resource: {uri}"),
            output: if output.is_empty() {
                format!("MCP resource {uri} from {server} returned no contents.")
            } else {
                output
            },
            metadata: json!({"server": server, "uri": uri, "contents": contents, "attachments": attachments.len()}),
            attachments: Some(attachments),
        })
    }
}

/// Adds the server's name to an entry.
fn named(listed: Listed) -> Value {
    let mut entry = listed.entry;
    if let Some(fields) = entry.as_object_mut() {
        fields.shift_remove("client");
        fields.insert("server".to_owned(), listed.server.into());
    }
    entry
}

impl Tool for ResourceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn argument_schema(&self) -> &Value {
        &self.arguments
    }

    fn declares(&self) -> outrigger_protocol::descriptor::Declared {
        crate::tool::declared()
    }

    /// An unknown server is rejected before hooks, as in OpenCode.
    fn precheck(&self, input: &Value) -> Result<(), ToolError> {
        self.asks(input).map(|_| ())
    }

    fn permissions(
        &self,
        input: &Value,
        _ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        self.asks(input)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let host = self.host()?;
            match self.kind {
                Kind::Read => self.read_one(&*host, &input).await,
                Kind::List | Kind::Templates => self.list(&*host, &input).await,
            }
        })
    }
}

impl ResourceTool {
    /// Returns the permission questions; fails if no server could answer.
    fn asks(&self, input: &Value) -> Result<Vec<PermissionAsk>, ToolError> {
        let host = self.host()?;
        if self.kind == Kind::Read {
            let (server, uri) = (required(input, "server")?, required(input, "uri")?);
            match host.mcp().has_resources(server) {
                None => {
                    return Err(ToolError::failed(format!(
                        "MCP server \"{server}\" is not connected"
                    )));
                }
                Some(false) => {
                    return Err(ToolError::failed(format!(
                        "MCP server \"{server}\" does not support resources"
                    )));
                }
                Some(true) => return Ok(vec![attach::ask(server, uri)]),
            }
        }
        let server = text(input, "server")?;
        let all = servers(host.mcp(), server)?;
        let of = |name: &str| format!("{SOURCE}{name}:*");
        let patterns: Vec<String> = match server {
            Some(server) => vec![of(server)],
            None => all.iter().map(|name| of(name)).collect(),
        };
        Ok(vec![PermissionAsk {
            permission: "read".to_owned(),
            always: patterns.clone(),
            patterns,
            metadata: server.map_or_else(|| json!({}), |server| json!({"server": server})),
            ..PermissionAsk::default()
        }])
    }
}
