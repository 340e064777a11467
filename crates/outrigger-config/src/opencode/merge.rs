//! Deep merging of layers, with or without tracking the origin of each value.
//!
//! Objects are merged key by key; everything else, including lists and null, is replaced. Keys keep the position of their
//! first occurrence. Two lists are an exception, and only between layers: `instructions` are joined without duplicates,
//! `plugin` is joined by the rules of `plugin_list`. Merging is associative as long as the layers agree on which values are
//! objects (they must: the types are checked before).

use std::collections::BTreeMap;

use outrigger_schema::child;
use serde_json::Value;

use crate::Origin;

/// Merges `overlay` into `base`, as OpenCode merges configuration objects.
pub fn merge(base: &mut Value, overlay: Value) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            for (key, value) in overlay {
                match base.get_mut(&key) {
                    Some(existing) => merge(existing, value),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, overlay) => *base = overlay,
    }
}

/// A document that grows layer by layer and records the origin of each leaf.
///
/// A leaf is a scalar, a list, or an empty object; `instructions` and `plugin` have one origin per element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layered {
    /// The document so far.
    pub(crate) value: Value,
    /// Origins by JSON pointer.
    pub(crate) origins: BTreeMap<String, Origin>,
}

impl Layered {
    /// Creates an empty document.
    pub(crate) fn new() -> Self {
        Self {
            value: Value::Object(serde_json::Map::new()),
            origins: BTreeMap::new(),
        }
    }

    /// Converts general rules of a tool to objects (`"bash": "ask"` to `"bash": {"*": "ask"}`) if the next layer has rules for
    /// single patterns, so that these are added.
    pub(crate) fn spread_rules(&mut self, next: &Value) {
        let mut places = vec!["/permission".to_owned()];
        for key in ["agent", "mode"] {
            let agents = next.get(key).and_then(Value::as_object);
            let names = agents.into_iter().flat_map(|it| it.keys());
            places.extend(names.map(|name| child(&child(&child("", key), name), "permission")));
        }
        for place in places {
            let Some(Value::Object(rules)) = next.pointer(&place) else {
                continue;
            };
            self.spread(&place);
            for (name, rule) in rules {
                if rule.is_object() {
                    self.spread(&child(&place, name));
                }
            }
        }
    }

    fn spread(&mut self, pointer: &str) {
        let Some(value) = self.value.pointer_mut(pointer).filter(|it| it.is_string()) else {
            return;
        };
        let rule = value.take();
        *value = serde_json::json!({ "*": rule });
        if let Some(origin) = self.origins.remove(pointer) {
            self.origins.insert(child(pointer, "*"), origin);
        }
    }

    /// Merges a layer on top. `origin` returns the origin of every leaf of the layer.
    pub(crate) fn absorb(&mut self, mut layer: Value, origin: &dyn Fn(&str) -> Origin) {
        self.join_instructions(&mut layer, origin);
        self.replace(layer, origin);
    }

    /// Like [`Self::absorb`], but all lists are replaced.
    pub(crate) fn replace(&mut self, layer: Value, origin: &dyn Fn(&str) -> Origin) {
        record(&mut self.origins, &self.value, &layer, "", origin);
        merge(&mut self.value, layer);
    }

    /// Replaces a value, with one origin.
    pub(crate) fn set(&mut self, key: &str, value: Value, origin: Origin) {
        let pointer = child("", key);
        forget(&mut self.origins, &pointer);
        leaves(&value, &pointer, &mut |leaf| {
            self.origins.insert(leaf.into(), origin.clone());
        });
        if let Some(map) = self.value.as_object_mut() {
            map.insert(key.into(), value);
        }
    }

    /// Appends to the list `instructions` instead of replacing it, without duplicates.
    fn join_instructions(&mut self, layer: &mut Value, origin: &dyn Fn(&str) -> Origin) {
        let Some(map) = layer.as_object_mut() else {
            return;
        };
        let Some(Value::Array(added)) = map.shift_remove("instructions") else {
            return;
        };
        let Some(own) = self.value.as_object_mut() else {
            return;
        };
        let list = own
            .entry("instructions")
            .or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else { return };
        for (index, item) in added.into_iter().enumerate() {
            if !list.contains(&item) {
                self.origins.insert(
                    format!("/instructions/{}", list.len()),
                    origin(&format!("/instructions/{index}")),
                );
                list.push(item);
            }
        }
    }
}

fn record(
    origins: &mut BTreeMap<String, Origin>,
    base: &Value,
    overlay: &Value,
    pointer: &str,
    origin: &dyn Fn(&str) -> Origin,
) {
    match (base, overlay) {
        (Value::Object(base), Value::Object(overlay)) => {
            if !overlay.is_empty() {
                origins.remove(pointer);
            }
            for (key, value) in overlay {
                let at = child(pointer, key);
                record(
                    origins,
                    base.get(key).unwrap_or(&Value::Null),
                    value,
                    &at,
                    origin,
                );
            }
        }
        _ => {
            forget(origins, pointer);
            leaves(overlay, pointer, &mut |leaf| {
                origins.insert(leaf.into(), origin(leaf));
            });
        }
    }
}

/// Calls `each` with the pointer of every leaf.
pub(crate) fn leaves(value: &Value, pointer: &str, each: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, member) in map {
                leaves(member, &child(pointer, key), each);
            }
        }
        _ => each(pointer),
    }
}

/// Returns pointers of all leaves, to list a document.
pub(crate) fn all_leaves(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    leaves(value, "", &mut |pointer| out.push(pointer.into()));
    out
}

/// Removes the origins of a value and of everything in it.
fn forget(origins: &mut BTreeMap<String, Origin>, pointer: &str) {
    origins.remove(pointer);
    let inside = format!("{pointer}/");
    let gone: Vec<String> = origins
        .range(inside.clone()..)
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(&inside))
        .cloned()
        .collect();
    for key in gone {
        origins.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    #[test]
    fn merges() {
        for (base, overlay, expected) in [
            (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
            (
                json!({"a": {"x": 1, "y": 2}}),
                json!({"a": {"y": 3}}),
                json!({"a": {"x": 1, "y": 3}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (
                json!({"a": {"x": 1}}),
                json!({"a": null}),
                json!({"a": null}),
            ),
            (json!({"a": {"x": 1}}), json!({"a": "s"}), json!({"a": "s"})),
            (
                json!({"a": "s"}),
                json!({"a": {"x": 1}}),
                json!({"a": {"x": 1}}),
            ),
            (
                json!({"b": 1, "a": 1}),
                json!({"c": 0, "a": 2}),
                json!({"b": 1, "a": 2, "c": 0}),
            ),
        ] {
            let mut merged = base.clone();
            merge(&mut merged, overlay.clone());
            assert_eq!(
                merged.to_string(),
                expected.to_string(),
                "{base} + {overlay}"
            );
        }
    }

    fn env(name: &str) -> impl Fn(&str) -> Origin + use<> {
        let origin = Origin::Env { name: name.into() };
        move |_| origin.clone()
    }

    #[test]
    fn origins_follow_the_winner() {
        let mut layered = Layered::new();
        layered.absorb(
            json!({"a": {"x": 1, "y": {"z": 2}}, "e": {}, "instructions": ["I", "J"]}),
            &env("ONE"),
        );
        layered.absorb(
            json!({"a": {"y": 5}, "e": {"f": 1}, "instructions": ["J", "K"]}),
            &env("TWO"),
        );
        let seen: Vec<String> = layered
            .origins
            .iter()
            .map(|(at, origin)| format!("{at} {origin}"))
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @"
        /a/x environment ONE
        /a/y environment TWO
        /e/f environment TWO
        /instructions/0 environment ONE
        /instructions/1 environment ONE
        /instructions/2 environment TWO
        ");
        assert_eq!(layered.value["instructions"], json!(["I", "J", "K"]));
    }

    /// Documents whose layers agree on which values are objects: `o*` are, `v*` are not.
    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(|n| json!(n)),
            "[a-c]{0,2}".prop_map(Value::String),
            prop::collection::vec(any::<u8>(), 0..3).prop_map(|list| json!(list)),
        ];
        let leaves = prop::collection::vec((0..3_u8, leaf), 0..4);
        let base = leaves.clone().prop_map(|pairs| object(pairs, Vec::new()));
        base.prop_recursive(3, 24, 3, move |inner| {
            (
                leaves.clone(),
                prop::collection::vec((0..3_u8, inner), 0..3),
            )
                .prop_map(|(l, o)| object(l, o))
        })
    }

    fn object(leaves: Vec<(u8, Value)>, objects: Vec<(u8, Value)>) -> Value {
        let leaves = leaves.into_iter().map(|(n, v)| (format!("v{n}"), v));
        let objects = objects.into_iter().map(|(n, v)| (format!("o{n}"), v));
        Value::Object(leaves.chain(objects).collect::<Map<_, _>>())
    }

    fn plus(mut left: Value, right: Value) -> Value {
        merge(&mut left, right);
        left
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn merge_is_associative(a in document(), b in document(), c in document()) {
            let left = plus(plus(a.clone(), b.clone()), c.clone());
            let right = plus(a, plus(b, c));
            prop_assert_eq!(left.to_string(), right.to_string());
        }

        #[test]
        fn the_empty_object_changes_nothing(a in document()) {
            prop_assert_eq!(plus(a.clone(), json!({})), a.clone());
            prop_assert_eq!(plus(json!({}), a.clone()), a);
        }

        #[test]
        fn every_leaf_has_exactly_one_origin(layers in prop::collection::vec(document(), 1..4)) {
            let mut layered = Layered::new();
            for (index, layer) in layers.into_iter().enumerate() {
                layered.absorb(layer, &env(&index.to_string()));
            }
            let mut expected = std::collections::BTreeSet::new();
            leaves(&layered.value, "", &mut |at| { expected.insert(at.to_owned()); });
            expected.remove("");
            let mut known: std::collections::BTreeSet<String> = layered.origins.into_keys().collect();
            known.remove("");
            prop_assert_eq!(known, expected);
        }
    }
}
