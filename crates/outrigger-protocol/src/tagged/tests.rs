//! Enums with a tag are read as serde's own code reads them: the same values, and the same errors in the same words.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize};
use serde_json::{Value, json};

use crate::buffer::{Buffer, from_value};
use crate::message::{MessageInfo, PartKind, ToolState};
use crate::provenance::Actor;
use crate::session::OutputFormat;
use crate::tool::ToolOutcome;
use crate::turn::{Input, ModelSignal, TurnOutcome};

/// Read by the code that serde derives, without [`super::tagged`].
pub(crate) trait BySerde: Sized {
    fn by_serde<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error>;
}

/// Compares both readings of a text, and what is written of the value.
fn compare<T: BySerde + DeserializeOwned + Serialize + Debug + PartialEq>(text: &str) {
    let ours: Result<T, _> = serde_json::from_str(text);
    let serde = T::by_serde(&mut serde_json::Deserializer::from_str(text));
    match (&ours, &serde) {
        (Ok(ours), Ok(serde)) => assert_eq!(ours, serde, "{text}"),
        (Err(ours), Err(serde)) => assert_eq!(ours.to_string(), serde.to_string(), "{text}"),
        (ours, serde) => panic!("{text}: {ours:?}, by serde {serde:?}"),
    }
    let Ok(value) = ours else { return };
    let written = json!(value);
    assert_eq!(from_value::<T>(written.clone()).unwrap(), value, "{text}");
    assert_eq!(serde_json::from_value::<T>(written).unwrap(), value);
}

fn each(text: &str) {
    compare::<Input>(text);
    compare::<ModelSignal>(text);
    compare::<TurnOutcome>(text);
    compare::<Actor>(text);
    compare::<MessageInfo>(text);
    compare::<PartKind>(text);
    compare::<ToolState>(text);
    compare::<ToolOutcome>(text);
    compare::<OutputFormat>(text);
}

/// Values of each of them, with all kinds of variants: without content, with fields, with a type of its own, with any object.
fn samples() -> Vec<Value> {
    let time = json!({ "start": 1, "end": 2 });
    let error = json!({ "name": "E", "data": { "message": "m", "b": [1, -2, 0.5, null, true] } });
    let user = json!({ "role": "user", "id": "msg_1", "sessionID": "ses_1", "time": { "created": 1 }, "agent": "a",
        "model": { "providerID": "p", "modelID": "m" }, "more": { "x": 1 } });
    let assistant = json!({ "role": "assistant", "id": "msg_2", "parentID": "msg_1", "sessionID": "ses_1", "mode": "a", "agent": "a",
        "path": { "cwd": "/", "root": "/" }, "cost": 1, "tokens": { "input": 1, "output": 2, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
        "modelID": "m", "providerID": "p", "time": { "created": 1 }, "error": error });
    let done = json!({ "title": "t", "output": "o", "metadata": { "k": [] } });
    vec![
        json!({ "kind": "begin", "turn": "trn_1", "session_id": "ses_1", "seed": u64::MAX, "agent": "a", "model": { "providerID": "p", "modelID": "m" },
            "path": { "cwd": "/", "root": "/" }, "no_reply": false, "wants_title": true, "max_steps": 5, "prices": [0, 0.5, 0, 0], "requested": {},
            "parts": [{ "type": "text", "text": "hi" }], "message": user }),
        json!({ "kind": "hook_done", "effect": 1, "output": { "a": 1 }, "block": { "code": "c", "message": "m" }, "changed_by": ["p"] }),
        json!({ "kind": "tools_ready", "effect": 2, "tools": [{ "name": "read", "read_only": true }] }),
        json!({ "kind": "model", "effect": 3, "signal": { "signal": "tool_end", "call_id": "c", "tool": "read", "raw": "{}" } }),
        json!({ "kind": "tool_done", "effect": 4, "outcome": { "outcome": "completed", "input": {}, "output": done } }),
        json!({ "kind": "cancel" }),
        json!({ "signal": "started" }),
        json!({ "signal": "text_end", "index": 0, "text": "t" }),
        json!({ "signal": "failed", "error": error }),
        json!({ "outcome": "done", "message_id": "msg_1" }),
        json!({ "outcome": "cancelled" }),
        json!({ "outcome": "failed", "input": null, "code": "c", "message": "m" }),
        json!({ "by": "user" }),
        json!({ "by": "plugin", "plugin": "p" }),
        user,
        assistant,
        json!({ "type": "text", "text": "t", "synthetic": true, "time": time, "more": 1 }),
        json!({ "type": "file", "mime": "text/plain", "url": "file:///x" }),
        json!({ "type": "tool", "callID": "c", "tool": "read", "state": { "status": "completed", "input": {}, "output": "o", "title": "t", "metadata": {}, "time": time } }),
        json!({ "type": "step-finish", "reason": "stop", "tokens": { "input": 1, "output": 2, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "cost": 0.25 }),
        json!({ "status": "pending", "input": {}, "raw": "" }),
        json!({ "status": "error", "input": {}, "error": "e", "time": time }),
        json!({ "type": "json_schema", "schema": {}, "retryCount": 2 }),
    ]
}

/// What is wrong with a value, somewhere in it.
#[derive(Clone, Debug)]
enum Change {
    Removed,
    Doubled,
    Last,
    Named(&'static str),
    Replaced(&'static str),
}

fn changes() -> impl Strategy<Value = Change> {
    let names = select(vec![
        "kind", "type", "role", "status", "outcome", "by", "signal", "x",
    ]);
    let values = select(vec![
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "18446744073709551615",
        "\"text\"",
        "\"user\"",
        "\"done\"",
        "{}",
        "{\"a\":{}}",
    ]);
    prop_oneof![
        Just(Change::Removed),
        Just(Change::Doubled),
        Just(Change::Last),
        names.prop_map(Change::Named),
        values.prop_map(Change::Replaced),
    ]
}

/// The text of a value, with one field of one of its objects changed.
fn changed(value: &Value, place: Index, change: &Change) -> String {
    let mut objects = Vec::new();
    paths(value, "", &mut objects);
    let (path, key) = objects[place.index(objects.len())].clone();
    text(value, "", &path, &key, change)
}

fn paths(value: &Value, at: &str, all: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                all.push((at.to_owned(), key.clone()));
                paths(value, &format!("{at}/{key}"), all);
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                paths(value, &format!("{at}/{place}"), all);
            }
        }
        _ => {}
    }
}

fn text(value: &Value, at: &str, path: &str, key: &str, change: &Change) -> String {
    match value {
        Value::Object(fields) => {
            let mut written = Vec::new();
            let mut last = Vec::new();
            for (name, value) in fields {
                let inner = text(value, &format!("{at}/{name}"), path, key, change);
                let field = |name: &str, value: &str| format!("{}:{value}", json!(name));
                if (at, name.as_str()) != (path, key) {
                    written.push(field(name, &inner));
                    continue;
                }
                match change {
                    Change::Removed => {}
                    Change::Doubled => written.extend([field(name, &inner), field(name, &inner)]),
                    Change::Last => last.push(field(name, &inner)),
                    Change::Named(other) => written.push(field(other, &inner)),
                    Change::Replaced(other) => written.push(field(name, other)),
                }
            }
            format!("{{{}}}", [written, last].concat().join(","))
        }
        Value::Array(list) => {
            let list: Vec<String> = list
                .iter()
                .enumerate()
                .map(|(place, value)| text(value, &format!("{at}/{place}"), path, key, change))
                .collect();
            format!("[{}]", list.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn what_is_written_is_read_as_by_serde() {
    for sample in samples() {
        each(&sample.to_string());
    }
    for other in [
        "null",
        "1",
        "-1",
        "1.5",
        "\"kind\"",
        "true",
        "{}",
        "{\"kind\":1}",
        "{\"kind\":{}}",
    ] {
        each(other);
    }
}

#[test]
fn an_object_is_no_list() {
    let list = "[\"cancel\"]";
    let error = serde_json::from_str::<Input>(list).unwrap_err().to_string();
    assert!(error.contains("invalid type: sequence"), "{error}");
    assert!(Input::by_serde(&mut serde_json::Deserializer::from_str(list)).is_ok());
}

#[test]
fn a_value_that_is_read_twice_is_the_same() {
    for sample in samples() {
        let text = sample.to_string();
        let buffer: Buffer<'_> = serde_json::from_str(&text).unwrap();
        let value: Value = serde::Deserialize::deserialize(buffer).unwrap();
        assert_eq!(value, sample);
        assert_eq!(from_value::<Value>(sample.clone()).unwrap(), sample);
    }
}

proptest! {
    #[test]
    fn a_field_that_is_wrong_is_said_as_by_serde(sample in select(samples()), place: Index, change in changes()) {
        each(&changed(&sample, place, &change));
    }
}
