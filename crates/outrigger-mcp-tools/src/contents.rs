//! The contents of an MCP resource.

use base64::Engine as _;
use outrigger_mcp::content::KINDS;
use serde_json::Value;

/// Maximum bytes of a file (OpenCode's).
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// One content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A text.
    Text {
        uri: String,
        mime: String,
        text: String,
    },
    /// A file for the model, as a `data:` URL.
    File {
        uri: String,
        mime: String,
        url: String,
    },
    /// A note that replaces omitted content.
    Left(String),
}

/// Parses the response to `resources/read`, in order. `asked` is the URI of contents without their own.
pub(crate) fn pieces(answer: &Value, asked: &str) -> Vec<Piece> {
    let one = std::slice::from_ref(&answer["contents"]);
    let list = answer["contents"].as_array().map_or(one, Vec::as_slice);
    list.iter()
        .filter(|content| content.is_object())
        .map(|content| piece(content, asked))
        .collect()
}

fn piece(content: &Value, asked: &str) -> Piece {
    let text = |key: &str| content[key].as_str();
    let uri = text("uri").unwrap_or(asked).to_owned();
    let mime = text("mimeType")
        .unwrap_or("application/octet-stream")
        .to_owned();
    if let Some(text) = text("text") {
        return Piece::Text {
            uri,
            mime,
            text: text.to_owned(),
        };
    }
    let Some(blob) = text("blob") else {
        return Piece::Left(format!(
            "[MCP resource content without text or blob: {uri}]"
        ));
    };
    let blob: String = blob.chars().filter(|c| !c.is_whitespace()).collect();
    let size = (blob.len() * 3 / 4).saturating_sub(blob.len() - blob.trim_end_matches('=').len());
    let left = |why: String| {
        Piece::Left(format!(
            "[Binary MCP resource omitted: {uri} ({mime}, {}) {why}]",
            readable(size)
        ))
    };
    if !KINDS.contains(&mime.as_str()) {
        return left("is not a supported attachment type".to_owned());
    }
    if size > MAX_BYTES {
        return left(format!("exceeds {}", readable(MAX_BYTES)));
    }
    // A broken one would make the provider refuse the whole conversation.
    if base64::engine::general_purpose::STANDARD
        .decode(&blob)
        .is_err()
    {
        return left("is not valid base64".to_owned());
    }
    let url = format!("data:{mime};base64,{blob}");
    Piece::File { uri, mime, url }
}

fn readable(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KB", bytes.div_ceil(1024)),
        _ => format!("{} MB", bytes.div_ceil(1024 * 1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_and_files_are_distinguished_and_the_rest_is_noted() {
        let answer = json!({"contents": [
            {"uri": "u:1", "mimeType": "text/plain", "text": "one"},
            {"mimeType": "image/png", "blob": "aG\nk="},
            {"uri": "u:3", "blob": "aGk="},
            {"uri": "u:4", "mimeType": "image/png", "blob": "?"},
            {"uri": "u:5"},
            7,
        ]});
        let shown: Vec<String> = pieces(&answer, "asked")
            .into_iter()
            .map(|piece| match piece {
                Piece::Text { uri, mime, text } => format!("{uri} {mime} {text}"),
                Piece::File { uri, url, .. } => format!("{uri} {url}"),
                Piece::Left(note) => note,
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        u:1 text/plain one
        asked data:image/png;base64,aGk=
        [Binary MCP resource omitted: u:3 (application/octet-stream, 2 B) is not a supported attachment type]
        [Binary MCP resource omitted: u:4 (image/png, 0 B) is not valid base64]
        [MCP resource content without text or blob: u:5]
        ");
        let single = json!({"contents": {"text": "x"}});
        assert_eq!(pieces(&single, "u").len(), 1);
        assert!(pieces(&json!({}), "u").is_empty());
        assert_eq!(
            [readable(5), readable(1025), readable(MAX_BYTES)],
            ["5 B", "2 KB", "10 MB"]
        );
    }
}
