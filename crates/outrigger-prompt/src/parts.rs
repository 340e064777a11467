//! Parts of a prompt.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_protocol::Object;
use outrigger_protocol::message::{PartKind, TextPart};
use outrigger_protocol::session::PartInput;
use serde_json::{Value, json};

/// A text of a prompt; a synthetic one was not written by the user.
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

/// Text of a prompt as parts.
#[must_use]
pub fn text(text: &str) -> PartInput {
    text_part(text.to_owned(), false)
}

/// A text file that is in its own address (`data:`), as the model reads it: as if the file had been read, as OpenCode has it.
#[must_use]
pub fn attached_text(file: &Object) -> Option<[PartInput; 2]> {
    let field = |key: &str| file.get(key).and_then(Value::as_str);
    let (about, data) = field("url")?.strip_prefix("data:")?.split_once(',')?;
    if field("mime") != Some("text/plain") {
        return None;
    }
    let bytes = match about.ends_with(";base64") {
        true => STANDARD.decode(data).ok()?,
        false => percent_decoded(data)?,
    };
    let read = json!({ "filePath": field("filename") });
    let read = format!("Called the read tool with the following input: {read}");
    let text = String::from_utf8(bytes).ok()?;
    Some([text_part(read, true), text_part(text, true)])
}

/// Bytes of an address, or of a part of one.
#[must_use]
pub fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut from = text.bytes();
    while let Some(byte) = from.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [from.next()?, from.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_an_address_is_read() {
        let read = |url: &str, mime: &str| {
            let file = json!({ "url": url, "mime": mime, "filename": "a.rs" });
            let parts = attached_text(file.as_object()?)?;
            let parts = parts.map(|it| json!(it)["text"].as_str().map(str::to_owned));
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
}
