//! Results of tool calls.

use base64::Engine as _;
use serde_json::{Value, json};

/// Media types passed to the model, in results and resources alike.
pub const KINDS: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
];
/// Maximum size of such a file, in bytes of base64.
const MAX_BASE64: usize = 14 * 1024 * 1024;

/// The readable form of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// Texts, and short notes where something was omitted.
    pub text: String,
    /// File parts (`{type, mime, url, filename?}`) for the model.
    pub attachments: Vec<Value>,
    /// `metadata` of the result, if it is an object.
    pub metadata: Value,
    /// The tool reports a failure; the texts give the reason.
    pub is_error: bool,
}

/// Parses a result; `None` if it has no `content` list.
#[must_use]
pub fn read(result: &Value) -> Option<Content> {
    let list = result.get("content")?.as_array()?;
    let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
    let (mut texts, mut attachments) = (Vec::new(), Vec::new());
    for item in list {
        match piece(item) {
            Piece::Text(text) => texts.push(text),
            Piece::File(file) => attachments.push(file),
            Piece::Nothing => {}
        }
    }
    Some(Content {
        text: texts.join("\n\n"),
        attachments,
        metadata: result
            .get("metadata")
            .filter(|value| value.is_object())
            .cloned()
            .unwrap_or_default(),
        is_error,
    })
}

/// Returns the message of a failed call (OpenCode's form).
#[must_use]
pub fn failure(result: &Value) -> String {
    let list = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = list
        .into_iter()
        .flatten()
        .filter(|item| item["type"] == "text")
        .filter_map(|item| item["text"].as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    if texts.is_empty() {
        "MCP tool returned an error".to_owned()
    } else {
        texts.join("\n\n")
    }
}

/// Converts a result to the form `{content: [...], ...}`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn complete(mut result: Value) -> Result<Value, String> {
    // The oldest version of the protocol had `toolResult` instead.
    let old = result.get_mut("toolResult").map(Value::take);
    let Some(fields) = result.as_object_mut() else {
        return Err("the result is not an object".to_owned());
    };
    let structured = fields
        .get("structuredContent")
        .filter(|value| !value.is_null())
        .or(old.as_ref());
    let filled = structured.map(|value| json!([{"type": "text", "text": value.to_string()}]));
    match fields.get("content") {
        Some(Value::Array(list)) if !list.is_empty() => {}
        Some(Value::Array(_)) | None => {
            fields.insert("content".to_owned(), filled.unwrap_or_else(|| json!([])));
        }
        Some(_) => return Err("`content` of the result is not a list".to_owned()),
    }
    Ok(result)
}

enum Piece {
    Text(String),
    File(Value),
    Nothing,
}

fn piece(item: &Value) -> Piece {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match item["type"].as_str() {
        Some("text") => Piece::Text(text(&item["text"])),
        Some("image") => file("image", &text(&item["mimeType"]), &item["data"], None),
        Some("resource") => {
            let resource = &item["resource"];
            match (
                resource["text"].as_str().filter(|text| !text.is_empty()),
                &resource["blob"],
            ) {
                (Some(text), _) => Piece::Text(text.to_owned()),
                (None, blob @ Value::String(_)) => {
                    let mime = resource["mimeType"]
                        .as_str()
                        .unwrap_or("application/octet-stream");
                    file("resource", mime, blob, resource["uri"].as_str())
                }
                _ => Piece::Nothing,
            }
        }
        Some("resource_link") => {
            let name = item["title"]
                .as_str()
                .or(item["name"].as_str())
                .unwrap_or("resource");
            Piece::Text(format!("[{name}: {}]", text(&item["uri"])))
        }
        Some(other) => left_out(
            other,
            item["mimeType"].as_str().unwrap_or("unknown type"),
            "cannot be shown to the model",
        ),
        None => Piece::Nothing,
    }
}

fn file(what: &str, mime: &str, data: &Value, name: Option<&str>) -> Piece {
    let data = data.as_str().unwrap_or_default();
    if !KINDS.contains(&mime) {
        return left_out(what, mime, "is not a type that the model takes");
    }
    if data.len() > MAX_BASE64 {
        return left_out(what, mime, "is too large");
    }
    // A broken file would make the provider refuse the whole conversation.
    if data.is_empty()
        || base64::engine::general_purpose::STANDARD
            .decode(data)
            .is_err()
    {
        return left_out(what, mime, "is not valid base64");
    }
    let mut part =
        json!({"type": "file", "mime": mime, "url": format!("data:{mime};base64,{data}")});
    if let Some(name) = name {
        part["filename"] = name.into();
    }
    Piece::File(part)
}

fn left_out(what: &str, mime: &str, why: &str) -> Piece {
    Piece::Text(format!("[{what} left out: {mime} {why}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_files_attached_and_the_rest_is_noted() {
        let result = json!({"metadata": {"a": 1}, "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "image", "mimeType": "image/png", "data": "?"},
            {"type": "image", "mimeType": "image/x-icon", "data": "aGk="},
            {"type": "resource", "resource": {"uri": "u:1", "text": "two"}},
            {"type": "resource", "resource": {"uri": "u:2", "mimeType": "application/pdf", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "u:3", "blob": "aGk="}},
            {"type": "resource_link", "uri": "u:4", "name": "four"},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGk="},
            {"no": "type"},
        ]});
        let content = read(&result).unwrap();
        insta::assert_snapshot!(content.text, @r"
        one

        [image left out: image/png is not valid base64]

        [image left out: image/x-icon is not a type that the model takes]

        two

        [resource left out: application/octet-stream is not a type that the model takes]

        [four: u:4]

        [audio left out: audio/wav cannot be shown to the model]
        ");
        insta::assert_snapshot!(json!(content.attachments), @r#"[{"type":"file","mime":"image/png","url":"data:image/png;base64,aGk="},{"type":"file","mime":"application/pdf","url":"data:application/pdf;base64,aGk=","filename":"u:2"}]"#);
        assert_eq!(
            (content.metadata, content.is_error),
            (json!({"a": 1}), false)
        );
        assert_eq!(read(&json!({"content": "x"})), None);
    }

    #[test]
    fn a_failure_says_what_opencode_says() {
        let cases = [
            (
                json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": " "}, {"type": "image"}, {"type": "text", "text": "b"}]}),
                "a\n\nb",
            ),
            (json!({"content": []}), "MCP tool returned an error"),
            (json!({}), "MCP tool returned an error"),
        ];
        for (result, expected) in cases {
            assert_eq!(failure(&result), expected);
        }
    }

    #[test]
    fn structured_content_stands_in_for_missing_content() {
        let filled = complete(json!({"content": [], "structuredContent": {"a": 1}})).unwrap();
        assert_eq!(
            filled["content"],
            json!([{"type": "text", "text": "{\"a\":1}"}])
        );
        assert_eq!(
            complete(json!({"toolResult": 5})).unwrap()["content"][0]["text"],
            "5"
        );
        assert_eq!(complete(json!({})).unwrap(), json!({"content": []}));
        assert!(complete(json!([])).is_err() && complete(json!({"content": 1})).is_err());
    }
}
