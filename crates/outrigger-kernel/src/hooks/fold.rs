//! Applies the changes of a handler.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage, MESSAGES};
use outrigger_protocol::hook::{Change, Key};
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

/// Why a change could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// The path does not exist in the output.
    NoSuchPlace(String),
    /// The whole output cannot be deleted.
    DeletesAll,
}

impl core::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoSuchPlace(at) => write!(f, "the output has no place {at}"),
            Self::DeletesAll => f.write_str("the whole output cannot be deleted"),
        }
    }
}

/// Returns a path as a JSON pointer, for records.
#[must_use]
pub fn pointer(path: &[Key]) -> String {
    path.iter().fold(String::new(), |text, key| match key {
        Key::Index(i) => format!("{text}/{i}"),
        Key::Name(name) => format!("{text}/{}", name.replace('~', "~0").replace('/', "~1")),
    })
}

/// Applies one change in place.
///
/// # Errors
/// When the path leads through something that is neither an object with that key nor an array with that index. The
/// output is unchanged then.
pub fn apply(output: &mut Value, change: &Change) -> Result<(), ApplyError> {
    let Some((last, parents)) = change.path.split_last() else {
        let value = change.value.clone().ok_or(ApplyError::DeletesAll)?;
        *output = value;
        return Ok(());
    };
    let missing = || ApplyError::NoSuchPlace(pointer(&change.path));
    let mut place = output;
    for key in parents {
        place = match (key, place) {
            (Key::Name(name), Value::Object(map)) => map.get_mut(name),
            (Key::Index(i), Value::Array(items)) => items.get_mut(*i),
            // JavaScript objects may have keys that look like numbers.
            (Key::Index(i), Value::Object(map)) => map.get_mut(&i.to_string()),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    match (last, place, &change.value) {
        (Key::Name(name), Value::Object(map), Some(value)) => {
            map.insert(name.to_owned(), value.clone());
        }
        // `shift_remove` keeps the order of the other keys.
        (Key::Name(name), Value::Object(map), None) => {
            map.shift_remove(name);
        }
        (Key::Index(i), Value::Array(items), Some(value)) => {
            if *i == items.len() {
                items.push(value.clone());
            } else {
                *items.get_mut(*i).ok_or_else(missing)? = value.clone();
            }
        }
        (Key::Index(i), Value::Object(map), Some(value)) => {
            map.insert(i.to_string(), value.clone());
        }
        (Key::Index(i), Value::Object(map), None) => {
            map.shift_remove(&i.to_string());
        }
        _ => return Err(missing()),
    }
    Ok(())
}

/// As [`apply`], over a payload: a change within the conversation touches that message only. When the whole list is
/// replaced, what came instead stands in the output, whatever it is: see [`take_history`].
///
/// # Errors
/// As [`apply`].
pub fn apply_to(item: &mut HookPayload, change: &Change) -> Result<(), ApplyError> {
    let Some(history) = &mut item.history else {
        return apply(&mut item.output, change);
    };
    let missing = || ApplyError::NoSuchPlace(pointer(&change.path));
    match change.path.as_slice() {
        [Key::Name(name), Key::Index(index), rest @ ..] if name == MESSAGES => {
            let (path, value) = (rest.to_vec(), change.value.clone());
            match (rest, value) {
                ([], Some(value)) if *index == history.len() => {
                    history.push(Arc::new(HistoryMessage::from(value)));
                    Ok(())
                }
                ([], Some(value)) => history
                    .set(*index, HistoryMessage::from(value))
                    .then_some(())
                    .ok_or_else(missing),
                ([], None) => Err(missing()),
                (_, value) => history
                    .change(*index, |message| apply(message, &Change { path, value }))
                    .ok_or_else(missing)?
                    .map_err(|_| missing()),
            }
        }
        [Key::Name(name), Key::Name(_), ..] if name == MESSAGES => Err(missing()),
        [] => {
            item.history = None;
            apply(&mut item.output, change)
        }
        [Key::Name(name)] if name == MESSAGES => {
            item.history = None;
            // Nothing to remove: the list was not in the output.
            match change.value {
                Some(_) => apply(&mut item.output, change),
                None => Ok(()),
            }
        }
        _ => apply(&mut item.output, change),
    }
}

/// Removes from the output the list with which a handler replaced the conversation.
pub(super) fn take_history(output: &mut Value) -> Option<History> {
    match output.as_object_mut()?.shift_remove(MESSAGES)? {
        Value::Array(messages) => Some(messages.into_iter().collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use serde_json::json;

    #[test]
    fn changes_by_table() {
        let start = json!({"a":{"b":[1,2]},"c":3});
        for (change, want) in [
            (
                json!({"path":["c"],"value":4}),
                Ok(json!({"a":{"b":[1,2]},"c":4})),
            ),
            (json!({"path":["a"]}), Ok(json!({"c":3}))),
            (
                json!({"path":["a","b",1],"value":null}),
                Ok(json!({"a":{"b":[1,null]},"c":3})),
            ),
            (
                json!({"path":["a","b",2],"value":9}),
                Ok(json!({"a":{"b":[1,2,9]},"c":3})),
            ),
            (
                json!({"path":["d"],"value":{}}),
                Ok(json!({"a":{"b":[1,2]},"c":3,"d":{}})),
            ),
            (json!({"path":[],"value":[]}), Ok(json!([]))),
            (json!({"path":[]}), Err(ApplyError::DeletesAll)),
            (
                json!({"path":["x","y"],"value":1}),
                Err(ApplyError::NoSuchPlace("/x/y".into())),
            ),
            (
                json!({"path":["a","b",7],"value":1}),
                Err(ApplyError::NoSuchPlace("/a/b/7".into())),
            ),
        ] {
            let change: Change = serde_json::from_value(change).unwrap();
            let mut output = start.clone();
            let got = apply(&mut output, &change).map(|()| output.clone());
            assert_eq!(got, want, "{change:?}");
            if want.is_err() {
                assert_eq!(output, start);
            }
        }
    }

    #[test]
    fn key_order_survives() {
        let mut output = json!({"z":1,"y":2,"x":3});
        apply(
            &mut output,
            &Change {
                path: alloc::vec![Key::Name("y".into())],
                value: None,
            },
        )
        .unwrap();
        let keys: Vec<&String> = output.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["z", "x"]);
    }
}
