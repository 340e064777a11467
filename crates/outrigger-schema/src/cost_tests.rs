use serde_json::{Value, json};

use super::*;

/// Returns a schema of `count` definitions, each of two references to the one before.
fn doubling(count: usize, reference: impl Fn(usize) -> String) -> Value {
    let mut defs = serde_json::Map::new();
    defs.insert("d0".into(), json!({"type": "string", "$anchor": "d0"}));
    for n in 1..=count {
        let before = json!({"$ref": reference(n - 1)});
        let def = json!({"$anchor": format!("d{n}"), "allOf": [before, before]});
        defs.insert(format!("d{n}"), def);
    }
    json!({"$id": "https://a.invalid/x/s", "$defs": defs, "properties": {"a": {"$ref": reference(count)}}})
}

#[test]
fn usual_schemas_are_cheap() {
    let tree = json!({
        "$defs": {"node": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/node"},
            "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            "name": {"type": "string", "pattern": "^a+$"},
        }, "additionalProperties": false}},
        "$ref": "#/$defs/node",
    });
    let mut value = json!({"name": "a"});
    for _ in 0..30 {
        value = json!({"left": value, "right": {"name": "aa"}});
    }
    assert!(Cost::new(&tree).unwrap().of(&value).unwrap() < 200);
    let list = json!({"properties": {"todos": {"type": "array", "items": {"type": "object",
        "properties": {"status": {"enum": ["a", "b"]}}, "required": ["status"]}}}});
    let many = json!({"todos": vec![json!({"status": "a"}); 5000]});
    assert!(Cost::new(&list).unwrap().of(&many).is_ok());
    let meta =
        json!({"properties": {"schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}});
    let cost = Cost::new(&meta).unwrap();
    assert!(cost.of(&json!({"schema": list})).is_ok());
}

#[test]
fn references_that_double_are_refused_for_the_value_that_pays() {
    for reference in [
        |n: usize| format!("#/$defs/d{n}"),
        |n: usize| format!("#/%24defs/d{n}"),
        |n: usize| format!("#d{n}"),
        |n: usize| format!("../x/s#/$defs/d{n}"),
    ] {
        let cost = Cost::new(&doubling(45, reference)).unwrap();
        let error = cost.of(&json!({"a": "x"})).unwrap_err();
        assert!(error.contains("more than 2000000 steps"), "{error}");
        assert!(cost.of(&json!({"b": "x"})).is_ok());
        assert!(
            Cost::new(&doubling(10, reference))
                .unwrap()
                .of(&json!({"a": "x"}))
                .is_ok()
        );
    }
    // Each level of the value doubles it.
    let twice = json!({"$id": "https://x.invalid/a", "properties": {"a": {"allOf": [
        {"$ref": "https://x.invalid/a"}, {"$ref": "#"}]}}});
    let mut value = json!({});
    for _ in 0..40 {
        value = json!({"a": value});
    }
    assert!(Cost::new(&twice).unwrap().of(&value).is_err());
    // What is not evaluated is looked for again on each level.
    let mut nested = json!({"type": "object"});
    for _ in 0..45 {
        nested = json!({"allOf": [nested], "unevaluatedProperties": false});
    }
    assert!(Cost::new(&nested).unwrap().of(&json!({})).is_err());
}

#[test]
fn chains_and_circles_are_refused() {
    let mut defs = serde_json::Map::new();
    for n in 0..2000 {
        let next = json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]});
        defs.insert(format!("d{n}"), next);
    }
    defs.insert("d2000".into(), json!({}));
    let error = Cost::new(&json!({"$defs": defs, "$ref": "#/$defs/d0"})).unwrap_err();
    assert!(error.contains("more than 4000 levels"), "{error}");
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"not": deep});
    }
    assert!(Cost::new(&deep).unwrap_err().contains("130 deep"));
    let circle = json!({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"x": {"$ref": "#/$defs/a"}}});
    let cost = Cost::new(&circle).unwrap();
    assert!(cost.of(&json!({})).is_ok() && cost.of(&json!({"x": 1})).is_err());
    for keyword in DYNAMIC {
        assert!(Cost::new(&json!({"items": {keyword: "#x"}})).is_err());
    }
    let many = json!({"enum": vec![0; MAX_VALUES]});
    assert!(Cost::new(&many).is_err());
    let parts = json!({"allOf": vec![json!({"$id": "x"}); MAX_ROOTS]});
    assert!(Cost::new(&parts).is_err());
    let named = json!({"properties": {"$dynamicRef": {}, "$id": {}, "$ref": {"type": "string"}}});
    assert!(Cost::new(&named).unwrap().of(&json!({"$ref": "x"})).is_ok());
}
