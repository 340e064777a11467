//! Parts of a prompt.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::Object;
use outrigger_protocol::merged::EXECUTOR;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind, TextPart, UserMessage};
use outrigger_protocol::session::{PartInput, PromptInput};
use serde_json::{Value, json};

/// Creates a text part; a synthetic one was not written by the user.
#[must_use]
pub fn text_part(text: String, synthetic: bool) -> PartInput {
    PartInput {
        id: None,
        kind: PartKind::Text(TextPart {
            text,
            synthetic: synthetic.then_some(true),
            ..TextPart::default()
        }),
    }
}

/// Creates the parts of a text prompt.
#[must_use]
pub fn text(text: &str) -> PartInput {
    text_part(text.to_owned(), false)
}

/// Returns a text file contained in its URL (`data:`) as if it had been read, as in OpenCode.
#[must_use]
pub fn attached_text(file: &Object) -> Option<[PartInput; 2]> {
    let field = |key: &str| file.get(key).and_then(Value::as_str);
    let (about, data) = field("url")?.strip_prefix("data:")?.split_once(',')?;
    if field("mime") != Some("text/plain") {
        return None;
    }
    let bytes = if about.ends_with(";base64") {
        STANDARD.decode(data).ok()?
    } else {
        percent_decoded(data)?
    };
    let read = json!({ "filePath": field("filename") });
    let read = format!("Called the read tool with the following input: {read}");
    let text = String::from_utf8(bytes).ok()?;
    Some([text_part(read, true), text_part(text, true)])
}

/// Decodes a URL or a part of one to bytes.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let is_byte = |it: &str| matches!(it.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    let is_whole = text.split('%').skip(1).all(is_byte);
    is_whole.then(|| percent_encoding::percent_decode_str(text).collect())
}

/// Returns the MIME type of an attached file, by its extension.
#[must_use]
pub fn mime(path: &Path) -> &'static str {
    match path
        .extension()
        .and_then(|e| e.to_str())
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        _ => "text/plain",
    }
}

/// Creates a file part with its URL.
#[must_use]
pub fn file_part(path: &Path, mime: &str, url: &str) -> PartInput {
    let mut file = Object::new();
    file.insert("mime".into(), json!(mime));
    file.insert(
        "filename".into(),
        json!(path.file_name().map(|n| n.to_string_lossy())),
    );
    file.insert("url".into(), json!(url));
    PartInput {
        id: None,
        kind: PartKind::File(file),
    }
}

/// Returns whether a part refers to a local file instead of containing it.
#[must_use]
pub fn is_local_file(part: &PartInput) -> bool {
    let PartKind::File(file) = &part.kind else {
        return false;
    };
    let url = file.get("url").and_then(Value::as_str);
    url.is_some_and(|url| url.starts_with("file:"))
}

/// Returns a file or folder as if the model had read it.
#[must_use]
pub fn read_parts(path: &Path, mime: &str, text: &str) -> Vec<PartInput> {
    vec![
        text_part(
            format!(
                "Called the read tool with the following input: {}",
                json!({ "filePath": path })
            ),
            true,
        ),
        text_part(
            format!(
                "<path>{}</path>\n<content>\n{text}\n</content>",
                path.display()
            ),
            true,
        ),
        file_part(path, mime, &format!("file://{}", path.display())),
    ]
}

/// Returns the path of a `file:` URL, without a range of lines.
#[must_use]
pub fn local(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("file://")?;
    let path = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = String::from_utf8(percent_decoded(path)?);
    path.ok().map(PathBuf::from)
}

/// Returns the model's text for a file that could not be read.
#[must_use]
pub fn not_read(path: &Path, reason: &str) -> PartInput {
    let path = path.display();
    let text = format!("Read tool failed to read {path} with the following error: {reason}");
    text_part(text, true)
}

/// Returns the prompt of a stored user message, if a model can read any of it.
#[must_use]
pub fn readable(message: &MessageWithParts) -> Option<PromptInput> {
    let MessageInfo::User(user) = &message.info else {
        return None;
    };
    let said = message.parts.iter().any(|part| match &part.kind {
        PartKind::Text(TextPart { ignored, .. }) => *ignored != Some(true),
        PartKind::Compaction(_) => false,
        _ => true,
    });
    said.then(|| prompt_of(user))
}

/// Returns the prompt of a user message, without its parts.
#[must_use]
pub fn prompt_of(user: &UserMessage) -> PromptInput {
    PromptInput {
        message_id: Some(user.id.clone()),
        agent: Some(user.agent.clone()),
        model: Some(user.model.clone()),
        system: user.system.clone(),
        tools: user.tools.clone(),
        format: user.format.clone(),
        provenance: user.provenance.clone(),
        executor: user
            .extra
            .get(EXECUTOR)
            .and_then(Value::as_str)
            .map(str::to_owned),
        ..PromptInput::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_an_address_is_read() {
        let read = |url: &str, mime: &str| {
            let file = json!({ "url": url, "mime": mime, "filename": "a.rs" });
            let parts = attached_text(file.as_object()?)?
                .map(|it| json!(it)["text"].as_str().map(str::to_owned));
            Some(parts.map(Option::unwrap_or_default).join("|"))
        };
        let head = "Called the read tool with the following input: {\"filePath\":\"a.rs\"}|";
        for (url, mime, want) in [
            ("data:text/plain;base64,aGk=", "text/plain", Some("hi")),
            ("data:text/plain,a%20b,c", "text/plain", Some("a b,c")),
            ("data:text/plain;base64,!!", "text/plain", None),
            ("data:image/png;base64,aGk=", "image/png", None),
            ("file:///a.rs", "text/plain", None),
        ] {
            let want = want.map(|text| format!("{head}{text}"));
            assert_eq!(read(url, mime), want, "{url}");
        }
    }

    #[test]
    fn addresses_of_files() {
        for (url, want) in [
            ("file:///a%20b/c.txt?start=1&end=2", Some("/a b/c.txt")),
            ("data:text/plain,x", None),
            ("file:///%zz", None),
            ("file:///%+1", None),
            ("file:///%2", None),
        ] {
            assert_eq!(local(url), want.map(PathBuf::from), "{url}");
        }
    }
}
