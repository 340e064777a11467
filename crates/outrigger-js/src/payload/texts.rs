//! Long texts of a payload, kept out of its JSON: escaping and unescaping them is most of the cost of a large payload on
//! both sides. In a file they follow the JSON verbatim.

use std::io;

use outrigger_protocol::history::{History, MESSAGES};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

/// Shorter texts stay in the JSON: storing their position would cost more.
const LONG: usize = 256;

/// A payload in two parts.
#[derive(Debug, Default)]
pub(crate) struct Parted {
    /// JSON of the items, with empty texts in place of long ones.
    pub(crate) items: Vec<u8>,
    /// For each long text its path, its first byte, its end, and whether it is ASCII; as JSON.
    pub(crate) places: Vec<u8>,
    /// The long texts, one after another.
    pub(crate) texts: Vec<u8>,
    /// Size of the items as JSON with everything in it.
    pub(crate) size: u64,
}

/// Returns whether a payload has more bytes as JSON, within a few percent. Reads only the texts outside a conversation,
/// whose sizes are stored with it.
pub(crate) fn is_over(items: &[HookPayload], bytes: usize) -> bool {
    let estimated = estimate(items);
    let left = bytes.checked_sub(estimated);
    left.is_none_or(|left| {
        let mut histories = items.iter().filter_map(|item| item.history.as_ref());
        histories.any(|history| history.is_over(left as u64))
    })
}

fn estimate(items: &[HookPayload]) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(list) => list.iter().map(|item| of(item) + 1).sum::<usize>() + 2,
            Value::Object(map) => {
                let fields = map.iter().map(|(key, value)| key.len() + 4 + of(value));
                fields.sum::<usize>() + 2
            }
            _ => 5,
        }
    }
    items
        .iter()
        .map(|item| of(&item.input) + of(&item.output) + 24)
        .sum()
}

/// Splits a payload.
pub(crate) fn part(items: &[HookPayload]) -> io::Result<Parted> {
    let mut parted = Parted::default();
    let mut path = Vec::new();
    parted.items.push(b'[');
    parted.places.push(b'[');
    for (index, item) in items.iter().enumerate() {
        comma(&mut parted.items, index);
        path.push(json!(index));
        parted.items.extend_from_slice(b"{\"input\":");
        parted.field("input", &item.input, &mut path)?;
        parted.items.extend_from_slice(b",\"output\":");
        parted.field("output", &item.output, &mut path)?;
        if let Some(history) = &item.history {
            path.push(json!("output"));
            parted.insert(history, &mut path)?;
            path.pop();
        }
        parted.items.push(b'}');
        path.pop();
    }
    parted.items.push(b']');
    parted.places.push(b']');
    parted.size += parted.items.len() as u64;
    Ok(parted)
}

impl Parted {
    /// Returns what follows the key `items` in a file: the items, the positions, and after the JSON the texts.
    pub(crate) fn into_parts(self) -> Vec<Vec<u8>> {
        let (places, end) = (b",\"texts\":".to_vec(), b"}\n".to_vec());
        vec![self.items, places, self.places, end, self.texts]
    }

    fn field(&mut self, key: &str, value: &Value, path: &mut Vec<Value>) -> io::Result<()> {
        path.push(json!(key));
        let added = self.add(value, path);
        path.pop();
        added
    }

    /// Inserts a conversation into the object that was written last.
    fn insert(&mut self, history: &History, path: &mut Vec<Value>) -> io::Result<()> {
        self.items.pop();
        let empty = self.items.last() == Some(&b'{');
        comma(&mut self.items, usize::from(!empty));
        serde_json::to_writer(&mut self.items, MESSAGES)?;
        self.items.extend_from_slice(b":[");
        path.push(json!(MESSAGES));
        for (index, message) in history.iter().enumerate() {
            comma(&mut self.items, index);
            path.push(json!(index));
            // One at a time: the whole as values would be most of the memory that a call needs.
            self.add(&message.to_value(), path)?;
            path.pop();
        }
        path.pop();
        self.items.extend_from_slice(b"]}");
        Ok(())
    }

    fn add(&mut self, value: &Value, path: &mut Vec<Value>) -> io::Result<()> {
        match value {
            Value::String(text) if text.len() >= LONG => {
                self.items.extend_from_slice(b"\"\"");
                self.size += escaped(text);
                let from = self.texts.len();
                self.texts.extend_from_slice(text.as_bytes());
                let count = self.places.len();
                comma(&mut self.places, count - 1);
                let place = (&*path, from, self.texts.len(), text.is_ascii());
                serde_json::to_writer(&mut self.places, &place)?;
            }
            Value::Array(list) => {
                self.items.push(b'[');
                for (index, item) in list.iter().enumerate() {
                    comma(&mut self.items, index);
                    path.push(json!(index));
                    self.add(item, path)?;
                    path.pop();
                }
                self.items.push(b']');
            }
            Value::Object(map) => {
                self.items.push(b'{');
                for (index, (key, item)) in map.iter().enumerate() {
                    comma(&mut self.items, index);
                    serde_json::to_writer(&mut self.items, key)?;
                    self.items.push(b':');
                    path.push(Value::String(key.clone()));
                    self.add(item, path)?;
                    path.pop();
                }
                self.items.push(b'}');
            }
            scalar => serde_json::to_writer(&mut self.items, scalar)?,
        }
        Ok(())
    }
}

fn comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Returns the size of a text in JSON, without its quotes.
fn escaped(text: &str) -> u64 {
    let more = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0_u64,
    };
    text.len() as u64 + text.as_bytes().iter().map(more).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_together_are_the_payload() {
        let long = format!("\"\\\n\t\r\u{1}\u{8}{}", "a".repeat(300));
        let other = "\u{e4}\u{1f600}".repeat(100);
        let output = json!({"messages": [{"a": long, "b": [1, null, other, "short"]}], "k\"": long, "n": -0.5});
        let items: Vec<HookPayload> = (0..2)
            .map(|index| HookPayload::new(json!({"n": index}), output.clone()))
            .collect();
        let parted = part(&items).unwrap();
        let whole = serde_json::to_vec(&items).unwrap();
        assert_eq!(parted.size, whole.len() as u64);
        assert!(is_over(&items, whole.len() * 9 / 10));
        assert!(!is_over(&items, whole.len() * 11 / 10));

        let mut back: Value = serde_json::from_slice(&parted.items).unwrap();
        let places: Value = serde_json::from_slice(&parted.places).unwrap();
        assert_eq!(places.as_array().unwrap().len(), 6);
        for place in places.as_array().unwrap() {
            let range = [1, 2].map(|at| usize::try_from(place[at].as_u64().unwrap()).unwrap());
            let text = std::str::from_utf8(&parted.texts[range[0]..range[1]]).unwrap();
            assert_eq!(place[3], json!(text.is_ascii()));
            let mut target = &mut back;
            for key in place[0].as_array().unwrap() {
                target = match key.as_u64() {
                    Some(index) => &mut target[usize::try_from(index).unwrap()],
                    None => &mut target[key.as_str().unwrap()],
                };
            }
            *target = json!(text);
        }
        assert_eq!(back, serde_json::to_value(&items).unwrap());
    }
}
