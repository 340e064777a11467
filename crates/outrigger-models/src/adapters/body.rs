//! Request bodies. Their longest list, the conversation, is written message by message, and what was written of a message for an
//! earlier request is not written again.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use bytes::Bytes;
use outrigger_protocol::Object;
use outrigger_protocol::model::{ChatMessage, ModelInfo, SharedMessage};
use serde_json::Value;

/// A body, as a JSON object.
#[derive(Debug)]
pub(crate) struct Body {
    fields: Object,
    /// The field that holds a list which is written already, and its items.
    list: Option<(&'static str, String)>,
}

impl Body {
    /// These fields; the list stands in the place of `name`, and last where there is none.
    pub(crate) fn with_list(mut fields: Object, name: &'static str, items: String) -> Self {
        fields.entry(name).or_insert(Value::Null);
        Self {
            fields,
            list: Some((name, items)),
        }
    }

    /// The fields, to be changed; not the list.
    pub(crate) fn fields(&mut self) -> &mut Object {
        &mut self.fields
    }

    /// Its JSON text.
    pub(crate) fn into_bytes(self) -> Bytes {
        /// Of everything but the list, so that it is seldom copied.
        const REST: usize = 32 * 1024;
        let list = self.list.as_ref();
        let mut out = Vec::with_capacity(list.map_or(0, |(_, items)| items.len()) + REST);
        let mut before = b'{';
        for (key, value) in &self.fields {
            out.push(std::mem::replace(&mut before, b','));
            // A value always has a JSON text, and writing to memory does not fail.
            let _ = serde_json::to_writer(&mut out, key);
            out.push(b':');
            match list.filter(|(name, _)| key == name) {
                Some((_, items)) => {
                    out.push(b'[');
                    out.extend_from_slice(items.as_bytes());
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
        // It is kept until the answer begins, for another try.
        if out.capacity() - out.len() > out.len() / 4 {
            out.shrink_to_fit();
        }
        Bytes::from(out)
    }

    /// The object that it is the text of.
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

/// How messages are written: all that the text of one depends on beside itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form(u64);

impl Form {
    /// `how` is what it depends on beside what the model can do.
    pub(crate) fn of(how: impl Hash, model: &ModelInfo) -> Self {
        let mut hasher = DefaultHasher::new();
        how.hash(&mut hasher);
        let capabilities = serde_json::to_string(&model.capabilities);
        capabilities.unwrap_or_default().hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Appends the items that `write` makes of a message. False where there are none.
    pub(crate) fn append(
        self,
        message: &SharedMessage,
        list: &mut String,
        write: impl FnOnce(&ChatMessage) -> Vec<Value>,
    ) -> bool {
        self.read(message, write, |items| {
            if items.is_empty() {
                return false;
            }
            if !list.is_empty() && !list.ends_with('[') {
                list.push(',');
            }
            list.push_str(items);
            true
        })
    }

    /// Calls `read` with the items that `write` makes of a message, separated by commas.
    pub(crate) fn read<T>(
        self,
        message: &SharedMessage,
        write: impl FnOnce(&ChatMessage) -> Vec<Value>,
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
    use serde_json::json;

    #[test]
    fn a_list_stands_where_its_field_does() {
        let Value::Object(fields) = json!({ "a\"": 1, "list": null, "b": {} }) else {
            panic!("an object")
        };
        let text = |body: Body| String::from_utf8(body.into_bytes().to_vec()).unwrap();
        let body = Body::with_list(fields, "list", r#"{"x":"]"},2"#.into());
        assert_eq!(text(body), r#"{"a\"":1,"list":[{"x":"]"},2],"b":{}}"#);
        assert_eq!(
            text(Body::with_list(Object::new(), "x", String::new())),
            r#"{"x":[]}"#
        );
        assert_eq!(text(Object::new().into()), "{}");
    }
}
