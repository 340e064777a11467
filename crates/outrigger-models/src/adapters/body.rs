//! Request bodies. Their longest list, the conversation, is written message by message; the text of a message, or of a block of
//! them, is reused from earlier requests.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use bytes::Bytes;
use outrigger_protocol::Object;
use outrigger_protocol::model::{ChatMessage, Messages, ModelInfo, Role, SharedMessage, Stretch};
use serde_json::Value;

/// A body, as a JSON object.
#[derive(Debug)]
pub(crate) struct Body {
    fields: Object,
    /// The name of the list that is already written, and its items.
    list: Option<(&'static str, Items)>,
}

impl Body {
    /// Creates a body of these fields; the list replaces the field `name`, or is appended if there is none.
    pub(crate) fn with_list(mut fields: Object, name: &'static str, items: Items) -> Self {
        fields.entry(name).or_insert(Value::Null);
        Self {
            fields,
            list: Some((name, items)),
        }
    }

    /// Returns the fields, without the list, for changes.
    pub(crate) fn fields(&mut self) -> &mut Object {
        &mut self.fields
    }

    /// Returns its JSON text.
    pub(crate) fn into_bytes(self) -> Bytes {
        /// Estimated bytes of everything but the list, to avoid copies.
        const REST: usize = 32 * 1024;
        let list = self.list.as_ref();
        let mut out = Vec::with_capacity(list.map_or(0, |(_, items)| items.len()) + REST);
        let mut before = b'{';
        for (key, value) in &self.fields {
            out.push(std::mem::replace(&mut before, b','));
            // A value can always be serialized, and writing to memory does not fail.
            let _ = serde_json::to_writer(&mut out, key);
            out.push(b':');
            match list.filter(|(name, _)| key == name) {
                Some((_, items)) => {
                    out.push(b'[');
                    items.append_to(&mut out);
                    out.push(b']');
                }
                None => {
                    let _ = serde_json::to_writer(&mut out, value);
                }
            }
        }
        if before == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
        // It is kept until the response starts, for retries.
        if out.capacity() - out.len() > out.len() / 4 {
            out.shrink_to_fit();
        }
        Bytes::from(out)
    }

    /// Parses it back to an object.
    #[cfg(test)]
    pub(crate) fn into_object(self) -> Object {
        serde_json::from_slice(&self.into_bytes()).unwrap()
    }
}

impl From<Object> for Body {
    fn from(fields: Object) -> Self {
        Self { fields, list: None }
    }
}

/// The text of a list's items, each preceded by a comma.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// Cached texts, each with what comes before it.
    kept: Vec<(String, Arc<str>)>,
    end: String,
}

impl Items {
    /// Returns where the next item is written.
    pub(crate) fn end(&mut self) -> &mut String {
        &mut self.end
    }

    fn push_kept(&mut self, text: Arc<str>) {
        self.kept.push((std::mem::take(&mut self.end), text));
    }

    fn pieces(&self) -> impl Iterator<Item = &str> {
        let kept = self.kept.iter();
        kept.flat_map(|(before, kept)| [before.as_str(), kept])
            .chain([self.end.as_str()])
    }

    fn len(&self) -> usize {
        self.pieces().map(str::len).sum()
    }

    /// Parses them back to values.
    #[cfg(test)]
    pub(crate) fn into_values(self) -> Vec<Value> {
        let mut text = b"[".to_vec();
        self.append_to(&mut text);
        text.push(b']');
        serde_json::from_slice(&text).unwrap()
    }

    /// Appends the items, separated by commas.
    fn append_to(&self, out: &mut Vec<u8>) {
        let mut is_first = true;
        for piece in self.pieces().filter(|piece| !piece.is_empty()) {
            let comma = usize::from(std::mem::take(&mut is_first));
            out.extend_from_slice(piece.as_bytes().get(comma..).unwrap_or_default());
        }
    }
}

/// The form in which messages are written: everything that the text depends on besides the message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form(u64);

impl Form {
    /// Creates a form; `how` is what it depends on besides the model's capabilities.
    pub(crate) fn of(how: impl Hash, model: &ModelInfo) -> Self {
        let mut hasher = DefaultHasher::new();
        how.hash(&mut hasher);
        let capabilities = serde_json::to_string(&model.capabilities);
        capabilities.unwrap_or_default().hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the items that `write` creates for each message.
    pub(crate) fn list(
        self,
        messages: &Messages,
        write: impl Fn(&ChatMessage) -> Vec<Value>,
    ) -> Items {
        let write = |message: &SharedMessage, _, out: &mut String| {
            self.read(message, &write, |items| {
                if !items.is_empty() {
                    out.push(',');
                    out.push_str(items);
                }
            });
            None
        };
        let mut items = Items::default();
        self.write(messages.stretches(usize::MAX), &mut items, write);
        items
    }

    /// Writes messages at the start of a list, in order. `write` gets the role of the open item, and appends to it or to the list;
    /// it returns the role of the item that is open then. So does this function.
    pub(crate) fn write(
        self,
        messages: impl Iterator<Item = Stretch>,
        items: &mut Items,
        write: impl Fn(&SharedMessage, Option<Role>, &mut String) -> Option<Role>,
    ) -> Option<Role> {
        let write = |messages: &[SharedMessage], open, out: &mut String| {
            let next = |open, message| write(message, open, out);
            messages.iter().fold(open, next)
        };
        let mut open = None;
        for stretch in messages {
            let kept = match &stretch {
                Stretch::One(_) => None,
                Stretch::Block(block) => block.written(self.behind(open), |messages| {
                    let mut text = String::new();
                    let end = write(messages, open, &mut text);
                    (text, end)
                }),
            };
            open = match kept {
                Some((text, end)) => {
                    items.push_kept(text);
                    end
                }
                None => write(stretch.messages(), open, items.end()),
            };
        }
        open
    }

    /// Returns the form of a block after an open item.
    fn behind(self, open: Option<Role>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0, open).hash(&mut hasher);
        hasher.finish()
    }

    /// Calls `read` with the items that `write` creates for a message, separated by commas.
    pub(crate) fn read<T>(
        self,
        message: &SharedMessage,
        write: impl Fn(&ChatMessage) -> Vec<Value>,
        read: impl FnOnce(&str) -> T,
    ) -> T {
        let write = |message: &ChatMessage| {
            let mut items = String::new();
            for item in write(message) {
                if !items.is_empty() {
                    items.push(',');
                }
                items.push_str(&item.to_string());
            }
            items
        };
        message.written(self.0, write, read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::openai::Dialect;
    use crate::adapters::{anthropic, gemini, openai, responses};
    use outrigger_protocol::model::{Content, ModelRequest};
    use serde_json::json;

    #[test]
    fn a_list_stands_where_its_field_does() {
        let Value::Object(fields) = json!({ "a\"": 1, "list": null, "b": {} }) else {
            panic!("an object")
        };
        let text = |body: Body| String::from_utf8(body.into_bytes().to_vec()).unwrap();
        let mut items = Items::default();
        items.end().push_str(r#",{"x":"]"}"#);
        items.push_kept(",2".into());
        let body = Body::with_list(fields, "list", items);
        assert_eq!(text(body), r#"{"a\"":1,"list":[{"x":"]"},2],"b":{}}"#);
        assert_eq!(
            text(Body::with_list(Object::new(), "x", Items::default())),
            r#"{"x":[]}"#
        );
        assert_eq!(text(Object::new().into()), "{}");
    }

    /// Returns messages of each kind, some of which send nothing.
    fn message(n: usize, kind: u8) -> ChatMessage {
        let text = |text: String| Content::Text { text };
        let call_id = format!("c{n}");
        let call = Content::ToolCall {
            call_id: call_id.clone(),
            tool: "read".into(),
            input: json!({ "n": n }),
            metadata: None,
        };
        let thought = Content::Reasoning {
            text: "hm".into(),
            metadata: None,
        };
        let content = match kind % 6 {
            0 => {
                let content = vec![text(format!("said {n} "))];
                return ChatMessage::User { content };
            }
            1 => {
                let content = vec![text(String::new())];
                return ChatMessage::User { content };
            }
            2 => {
                let content = format!("answer {n}");
                return ChatMessage::Tool {
                    call_id,
                    tool: "read".into(),
                    content,
                    is_error: n.is_multiple_of(2),
                };
            }
            3 => vec![text(format!("answered {n} "))],
            4 => vec![thought, call.clone(), call],
            _ => vec![thought],
        };
        ChatMessage::Assistant { content }
    }

    proptest::proptest! {
        /// The first request with a block writes its messages one by one, the second caches its text, and the third uses it.
        #[test]
        fn blocks_are_written_like_single_messages(
            kinds in proptest::collection::vec((0_u8..6, proptest::bool::ANY), 1..40),
        ) {
            let system = || SharedMessage::from(ChatMessage::System { content: "S".into() });
            let mut single = Messages::from_iter([system()]);
            let mut blocks = single.clone();
            let mut block = Vec::new();
            for (n, (kind, ends)) in kinds.into_iter().enumerate() {
                let message = SharedMessage::from(message(n, kind));
                single.push(message.clone());
                block.push(message);
                if ends {
                    blocks.push_block(Arc::new(std::mem::take(&mut block).into()));
                }
            }
            block.into_iter().for_each(|it| blocks.push(it));
            let model = ModelInfo::default();
            let adapters = [
                |model: &ModelInfo, request: &ModelRequest| openai::body(Dialect::Compatible, model, request),
                anthropic::body,
                responses::body,
                gemini::body,
            ];
            let of = |messages: &Messages| ModelRequest { messages: messages.clone(), ..ModelRequest::default() };
            for body in adapters {
                let wanted = body(&model, &of(&single)).into_bytes();
                serde_json::from_slice::<Value>(&wanted).unwrap();
                for _ in 0..3 {
                    proptest::prop_assert_eq!(&body(&model, &of(&blocks)).into_bytes(), &wanted);
                }
            }
        }
    }
}
