//! MCP resources attached to a prompt: file parts whose `source` is a resource.

use outrigger_mcp::McpServers;
use outrigger_prompt::parts::text_part;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::session::{PartInput, PromptInput};
use serde_json::{Value, json};

use crate::contents::{Piece, pieces};

/// Replaces the resources of a prompt with their contents. A failure is noted there (OpenCode's rule).
pub async fn read_resources(servers: &McpServers, prompt: &mut PromptInput) {
    if !prompt.parts.iter().any(|part| resource(part).is_some()) {
        return;
    }
    let mut parts = Vec::with_capacity(prompt.parts.len());
    for part in std::mem::take(&mut prompt.parts) {
        match resource(&part) {
            Some((server, uri, name)) => {
                parts.extend(attached(servers, &server, &uri, &name).await)
            }
            None => parts.push(part),
        }
    }
    prompt.parts = parts;
}

async fn attached(servers: &McpServers, server: &str, uri: &str, name: &str) -> Vec<PartInput> {
    let shown = |text| text_part(text, true);
    let mut parts = vec![shown(format!("Reading MCP resource: {name} ({uri})"))];
    let answer = match servers.read_resource(server, uri).await {
        Ok(answer) => answer,
        Err(error) => {
            parts.push(shown(format!(
                "Failed to read MCP resource {name}: {error}"
            )));
            return parts;
        }
    };
    for piece in pieces(&answer, uri) {
        match piece {
            Piece::Text { text, .. } => parts.push(shown(text)),
            Piece::Left(note) => parts.push(shown(note)),
            Piece::File { uri, mime, url } => {
                parts.push(shown(format!(
                    "[Binary MCP resource attached: {uri} ({mime})]"
                )));
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

/// Returns server, URI and name of a part that represents a resource.
fn resource(part: &PartInput) -> Option<(String, String, String)> {
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
    Some((text("clientName")?, uri.clone(), name.to_owned()))
}
