//! MCP resources attached to a prompt: file parts whose `source` is a resource.

use outrigger_mcp::McpServers;
use outrigger_prompt::parts::text_part;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::session::PartInput;
use outrigger_tools::PermissionAsk;
use serde_json::{Value, json};

use crate::contents::{Piece, pieces};
use crate::tool::SOURCE;

/// The tool that reads a resource for a model.
pub const READ_RESOURCE: &str = "read_mcp_resource";

/// A resource that a prompt names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    server: String,
    uri: String,
    /// Name for the model.
    name: String,
}

impl Resource {
    /// Returns the resource that a part stands for.
    #[must_use]
    pub fn of(part: &PartInput) -> Option<Self> {
        let PartKind::File(file) = &part.kind else {
            return None;
        };
        let source = file.get("source")?;
        let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("type")? != "resource" {
            return None;
        }
        let uri = text("uri")?;
        let name = file.get("filename").and_then(Value::as_str).unwrap_or(&uri);
        Some(Self {
            server: text("clientName")?,
            name: name.to_owned(),
            uri,
        })
    }

    /// Returns the arguments of [`READ_RESOURCE`] that read it.
    #[must_use]
    pub fn arguments(&self) -> Value {
        json!({"server": self.server, "uri": self.uri})
    }

    /// Returns the permission question about it.
    #[must_use]
    pub fn asks(&self) -> PermissionAsk {
        ask(&self.server, &self.uri)
    }

    /// Returns the parts in its place: its content, or why it was not read (OpenCode's rule).
    pub async fn read(&self, servers: &McpServers) -> Vec<PartInput> {
        match servers.read_resource(&self.server, &self.uri).await {
            Ok(answer) => self.parts(&answer),
            Err(error) => self.left(&error.to_string()),
        }
    }

    /// Returns the parts in its place if it is not read.
    #[must_use]
    pub fn left(&self, why: &str) -> Vec<PartInput> {
        let why = format!("Failed to read MCP resource {}: {why}", self.name);
        vec![self.announced(), text_part(why, true)]
    }

    fn announced(&self) -> PartInput {
        let text = format!("Reading MCP resource: {} ({})", self.name, self.uri);
        text_part(text, true)
    }

    fn parts(&self, answer: &Value) -> Vec<PartInput> {
        let mut parts = vec![self.announced()];
        for piece in pieces(answer, &self.uri) {
            match piece {
                Piece::Text { text, .. } => parts.push(text_part(text, true)),
                Piece::Left(note) => parts.push(text_part(note, true)),
                Piece::File { uri, mime, url } => {
                    let note = format!("[Binary MCP resource attached: {uri} ({mime})]");
                    parts.push(text_part(note, true));
                    let file = json!({"mime": mime, "filename": uri, "url": url});
                    parts.push(PartInput {
                        id: None,
                        kind: PartKind::File(file.as_object().cloned().unwrap_or_default()),
                    });
                }
            }
        }
        parts
    }
}

/// Returns whether a pattern of a question about reading is about a resource, not about a file.
#[must_use]
pub fn is_resource(pattern: &str) -> bool {
    pattern.starts_with(SOURCE)
}

/// Returns the permission question about a resource: resources are asked about as `read`.
pub(crate) fn ask(server: &str, uri: &str) -> PermissionAsk {
    PermissionAsk {
        permission: "read".to_owned(),
        patterns: vec![format!("{SOURCE}{server}:{uri}")],
        always: vec![format!("{SOURCE}{server}:*")],
        metadata: json!({"server": server, "uri": uri}),
        ..PermissionAsk::default()
    }
}
