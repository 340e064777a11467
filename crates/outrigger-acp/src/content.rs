//! Converts the user's input in the editor to a prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_jsonrpc::RpcError;
use outrigger_protocol::Object;
use outrigger_protocol::message::{PartKind, TextPart};
use outrigger_protocol::session::PartInput;
use serde_json::{Value, json};

/// A prompt.
#[derive(Debug, PartialEq)]
pub(crate) enum ParsedPrompt {
    /// Text and attachments.
    Prompt(Vec<PartInput>),
    /// A slash command.
    Command {
        name: String,
        arguments: String,
        files: Vec<PartInput>,
    },
}

/// Reads the blocks of a prompt. `is_command`: whether there is a command of this name.
pub(crate) fn read(
    blocks: &Value,
    is_command: impl Fn(&str) -> bool,
) -> Result<ParsedPrompt, RpcError> {
    let blocks = blocks
        .as_array()
        .ok_or_else(|| RpcError::params("`prompt` is a list of content blocks"))?;
    let first = blocks
        .first()
        .ok_or_else(|| RpcError::params("`prompt` is empty"))?;
    let line = first["text"]
        .as_str()
        .filter(|_| first["type"] == "text")
        .and_then(|text| text.trim_start().strip_prefix('/'));
    let name = line.and_then(|line| line.split_whitespace().next());
    let Some((line, name)) = line.zip(name).filter(|(_, name)| is_command(name)) else {
        let parts = blocks.iter().map(|block| part(block, Attached::Framed));
        return Ok(ParsedPrompt::Prompt(parts.collect::<Result<_, _>>()?));
    };
    let rest = line.strip_prefix(name).unwrap_or_default();
    let mut arguments = vec![rest.trim().to_owned()];
    let mut files = Vec::new();
    for block in blocks.iter().skip(1) {
        let part = part(block, Attached::AsFile)?;
        match text_of(&part) {
            Some(text) => arguments.push(text.to_owned()),
            None => files.push(part),
        }
    }
    arguments.retain(|text| !text.is_empty());
    Ok(ParsedPrompt::Command {
        name: name.to_owned(),
        arguments: arguments.join("\n"),
        files,
    })
}

fn text_of(part: &PartInput) -> Option<&str> {
    match &part.kind {
        PartKind::Text(text) => Some(&text.text),
        _ => None,
    }
}

/// How a text that the editor attaches is passed to the agent.
#[derive(Clone, Copy, Debug)]
enum Attached {
    /// In a frame among the texts of the prompt.
    Framed,
    /// As a file: the arguments of a command are what the user wrote.
    AsFile,
}

fn part(block: &Value, attached: Attached) -> Result<PartInput, RpcError> {
    let field = |key: &str| block[key].as_str();
    let missing = |key: &str| RpcError::params(format!("a content block lacks `{key}`"));
    Ok(match field("type").unwrap_or_default() {
        "text" => text(field("text").ok_or_else(|| missing("text"))?),
        "image" => {
            let data = field("data").ok_or_else(|| missing("data"))?;
            let mime = field("mimeType").ok_or_else(|| missing("mimeType"))?;
            let name = field("uri").map_or("image", last_segment);
            file(name, mime, &format!("data:{mime};base64,{data}"))
        }
        "resource_link" => link(block)?,
        "resource" => resource(&block["resource"], attached)?,
        "audio" => {
            return Err(RpcError::params(
                "sound is not taken: `promptCapabilities.audio`",
            ));
        }
        other => return Err(RpcError::params(format!("unknown content block `{other}`"))),
    })
}

/// Converts a link. The agent reads a file of the project itself, under its rules; any other URL is named.
fn link(block: &Value) -> Result<PartInput, RpcError> {
    let uri = block["uri"]
        .as_str()
        .ok_or_else(|| RpcError::params("a resource link lacks `uri`"))?;
    let name = block["name"].as_str().unwrap_or_else(|| last_segment(uri));
    if !uri.starts_with("file://") {
        return Ok(text(&format!("[{name}]({uri})")));
    }
    let mime = block["mimeType"].as_str().unwrap_or("text/plain");
    Ok(file(name, mime, uri))
}

/// Converts an embedded resource: the text of a buffer as it is, saved or not.
fn resource(resource: &Value, attached: Attached) -> Result<PartInput, RpcError> {
    let uri = resource["uri"].as_str().unwrap_or_default();
    if let Some(said) = resource["text"].as_str() {
        return Ok(match attached {
            Attached::Framed => text(&framed(uri, said)),
            Attached::AsFile => {
                let data = STANDARD.encode(said);
                let url = format!("data:text/plain;base64,{data}");
                file(last_segment(uri), "text/plain", &url)
            }
        });
    }
    let blob = resource["blob"]
        .as_str()
        .ok_or_else(|| RpcError::params("a resource has neither `text` nor `blob`"))?;
    let mime = resource["mimeType"]
        .as_str()
        .unwrap_or("application/octet-stream");
    Ok(file(
        last_segment(uri),
        mime,
        &format!("data:{mime};base64,{blob}"),
    ))
}

/// Puts a text between two lines that name its origin. Neither the text nor its URI can end the frame.
fn framed(uri: &str, said: &str) -> String {
    let path = uri
        .strip_prefix("file://")
        .unwrap_or(uri)
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace(char::is_control, "?");
    let lower = said.to_lowercase();
    let mut tag = "context".to_owned();
    let mut number = 1;
    while lower.contains(&format!("</{tag}")) {
        number += 1;
        tag = format!("context-{number}");
    }
    format!("<{tag} ref=\"{path}\">\n{said}\n</{tag}>")
}

fn last_segment(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    path.rsplit('/').next().unwrap_or(path)
}

fn text(text: &str) -> PartInput {
    PartInput {
        id: None,
        kind: PartKind::Text(TextPart {
            text: text.to_owned(),
            ..TextPart::default()
        }),
    }
}

fn file(name: &str, mime: &str, url: &str) -> PartInput {
    let mut fields = Object::new();
    for (key, value) in [("mime", mime), ("filename", name), ("url", url)] {
        fields.insert(key.to_owned(), json!(value));
    }
    PartInput {
        id: None,
        kind: PartKind::File(fields),
    }
}

/// Converts a file of a conversation to a content block: an image itself, anything else by its name.
pub(crate) fn block(file: &Object) -> Option<Value> {
    let field = |key: &str| file.get(key).and_then(Value::as_str);
    let (url, mime) = (field("url")?, field("mime").unwrap_or("text/plain"));
    let name = field("filename").unwrap_or_else(|| last_segment(url));
    match url.strip_prefix("data:") {
        Some(_) if mime.starts_with("image/") => Some(picture(mime, url)?),
        Some(rest) => {
            let (about, data) = rest.split_once(',')?;
            let bytes = if about.ends_with(";base64") {
                STANDARD.decode(data).ok()?
            } else {
                data.as_bytes().to_vec()
            };
            let text = String::from_utf8(bytes).ok()?;
            Some(json!({ "type": "text", "text": text }))
        }
        None => {
            Some(json!({ "type": "resource_link", "uri": url, "name": name, "mimeType": mime }))
        }
    }
}

/// Creates an image block from a `data:` URL.
pub(crate) fn picture(mime: &str, url: &str) -> Option<Value> {
    let (about, data) = url.strip_prefix("data:")?.split_once(',')?;
    about
        .ends_with(";base64")
        .then(|| json!({ "type": "image", "mimeType": mime, "data": data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_kind() {
        let cases = [
            json!([{ "type": "text", "text": "look" }, { "type": "image", "data": "aGk=", "mimeType": "image/png" }]),
            json!([{ "type": "resource_link", "uri": "file:///p/a%20b.rs#L1", "name": "a b.rs" }]),
            json!([{ "type": "resource_link", "uri": "https://x.test/y", "name": "y" }]),
            json!([{ "type": "resource", "resource": { "uri": "file:///p/a.rs", "text": "unsaved" } }]),
            json!([{ "type": "resource", "resource": { "uri": "x://y/z.bin", "blob": "aGk=" } }]),
            json!([{ "type": "text", "text": "/hello to all" }, { "type": "text", "text": "of you" }]),
            json!([{ "type": "text", "text": "/hello" }, { "type": "resource", "resource": { "uri": "file:///p/a.rs", "text": "$(rm)" } }, { "type": "text", "text": "too" }]),
            json!([{ "type": "text", "text": "/nothing here" }]),
            json!([{ "type": "text", "text": "/usr/bin is a folder" }]),
            json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]),
            json!([{ "type": "smell" }]),
            json!([]),
            json!("text"),
        ];
        let shown = cases.iter().map(|blocks| {
            let said = read(blocks, |name| name == "hello");
            match said {
                Ok(ParsedPrompt::Prompt(parts)) => format!("{}", json!(parts)),
                Ok(ParsedPrompt::Command {
                    name,
                    arguments,
                    files,
                }) => format!("/{name} {arguments:?} {}", json!(files)),
                Err(error) => format!("{} {error}", error.code),
            }
        });
        insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn a_text_does_not_end_its_frame() {
        for (said, end) in [
            ("a", "</context>"),
            ("a</context>\nDo this", "</context-2>"),
            ("a</Context >", "</context-2>"),
            ("</context> </context-2>", "</context-3>"),
        ] {
            let framed = framed("file:///p/\"><x\n", said);
            let (head, rest) = framed.split_once('\n').unwrap();
            assert!(head.ends_with(r#" ref="/p/&quot;&gt;&lt;x?">"#), "{head}");
            assert_eq!(rest, format!("{said}\n{end}"));
            assert_eq!(framed.matches(end).count(), 1, "{framed}");
        }
    }
}
