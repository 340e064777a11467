//! Long texts: shortened in entries, and returned in full on request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outrigger_api::Shortened;
use outrigger_kernel::merge::Form;
use outrigger_protocol::merged::ConversationMessage;
use outrigger_stdx::text::{ceil_char_boundary, floor_char_boundary};
use serde_json::Value;

/// Maximum bytes of a text that is sent in full.
const MAX_TEXT: usize = 16 * 1024;
/// Bytes kept of a longer text.
const KEPT: usize = 4 * 1024;

/// The end of a long text that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

/// A reference to a text of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) form: Form,
    pub(crate) key: String,
    pub(crate) pointer: String,
}

impl Reference {
    fn text(&self) -> String {
        let form = match self.form {
            Form::Merged => 'm',
            Form::Apart => 'a',
        };
        URL_SAFE_NO_PAD.encode(format!("{form}\n{}\n{}", self.key, self.pointer))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut lines = text.splitn(3, '\n');
        let form = match lines.next()? {
            "m" => Form::Merged,
            "a" => Form::Apart,
            _ => return None,
        };
        Some(Self {
            form,
            key: lines.next()?.to_owned(),
            pointer: lines.next()?.to_owned(),
        })
    }

    /// Returns the text in a message.
    pub(crate) fn of(&self, message: &ConversationMessage) -> Option<String> {
        if self.pointer == "/content" {
            return Some(message.content.clone());
        }
        let (first, rest) = self
            .pointer
            .strip_prefix("/metadata/")?
            .split_once('/')
            .map_or_else(
                || {
                    (
                        self.pointer.strip_prefix("/metadata/").unwrap_or_default(),
                        "",
                    )
                },
                |(first, rest)| (first, rest),
            );
        let field = message.metadata.get(&unescaped(first))?;
        let value = match rest {
            "" => Some(field),
            rest => field.pointer(&format!("/{rest}")),
        };
        Some(value?.as_str()?.to_owned())
    }
}

/// Shortens the long texts of a message, and returns which.
pub(crate) fn shorten(
    message: &mut ConversationMessage,
    key: &str,
    form: Form,
    end: End,
) -> Vec<Shortened> {
    let mut cutter = Cutter {
        key,
        form,
        end,
        cut: Vec::new(),
    };
    cutter.text(&mut message.content, "/content");
    for (name, value) in &mut message.metadata {
        cutter.value(value, &format!("/metadata/{}", escaped(name)));
    }
    cutter.cut
}

struct Cutter<'k> {
    key: &'k str,
    form: Form,
    end: End,
    cut: Vec<Shortened>,
}

impl Cutter<'_> {
    fn value(&mut self, value: &mut Value, at: &str) {
        match value {
            Value::String(text) => self.text(text, at),
            Value::Array(items) => {
                for (n, item) in items.iter_mut().enumerate() {
                    self.value(item, &format!("{at}/{n}"));
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    self.value(field, &format!("{at}/{}", escaped(name)));
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &mut String, at: &str) {
        let bytes = text.len();
        if bytes <= MAX_TEXT {
            return;
        }
        *text = match self.end {
            End::First => text[..floor_char_boundary(text, KEPT)].to_owned(),
            End::Last => text[ceil_char_boundary(text, bytes - KEPT)..].to_owned(),
        };
        let reference = Reference {
            form: self.form,
            key: self.key.to_owned(),
            pointer: at.to_owned(),
        };
        self.cut.push(Shortened {
            at: at.to_owned(),
            bytes,
            reference: reference.text(),
        });
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_cut_is_found_again() {
        let long = "ä".repeat(10_000);
        let metadata = json!({ "output": long, "a/b": { "list": ["short", long] }, "short": "x" });
        let whole = ConversationMessage {
            id: "p".into(),
            role: "assistant".into(),
            message_type: "tool_execution".into(),
            content: format!("{long}!"),
            timestamp: 1,
            metadata: metadata.as_object().unwrap().clone(),
        };
        for (form, end) in [(Form::Merged, End::First), (Form::Apart, End::Last)] {
            let mut message = whole.clone();
            let cut = shorten(&mut message, "msg/prt", form, end);
            assert!(json!(message).to_string().len() < 20_000);
            assert_eq!(message.content.ends_with('!'), end == End::Last);
            let places: Vec<&str> = cut.iter().map(|one| one.at.as_str()).collect();
            assert_eq!(
                places,
                ["/content", "/metadata/output", "/metadata/a~1b/list/1"]
            );
            for one in &cut {
                let reference = Reference::parse(&one.reference).unwrap();
                assert_eq!((reference.form, reference.key.as_str()), (form, "msg/prt"));
                let text = reference.of(&whole).unwrap();
                assert_eq!(text.len(), one.bytes);
                assert!(text.starts_with(&long));
            }
        }
        assert_eq!(Reference::parse("x"), None);
    }
}
