//! For tests: checks that a type accepts exactly the keys of an [`outrigger_schema`] table.

use std::collections::BTreeSet;

use outrigger_schema::{Field, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Compares a type with its table: it reads and writes every key, and accepts no other key in any object. Accepted keys are
/// determined by serde's error for an unknown key.
pub(crate) fn assert_same<T: DeserializeOwned + Serialize>(schema: &Schema) {
    let whole = schema.example();
    let read: T = serde_json::from_value(whole.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    for (pointer, fields) in objects(schema, String::new()) {
        let mut more = whole.clone();
        more.pointer_mut(&pointer).unwrap()["?"] = true.into();
        let Err(error) = serde_json::from_value::<T>(more) else {
            assert_eq!(pointer, "", "any key is taken there");
            continue;
        };
        let error = error.to_string();
        let taken: BTreeSet<&str> = error.split('`').skip(3).step_by(2).collect();
        let names = fields
            .iter()
            .flat_map(|field| [&[field.name], field.aliases].concat());
        assert_eq!(taken, names.collect(), "{pointer}");
    }
}

/// Returns the objects of a schema's example that have named members.
fn objects(schema: &Schema, pointer: String) -> Vec<(String, &'static [Field])> {
    match schema.plain() {
        Schema::List(item) => objects(item, pointer + "/0"),
        Schema::Map(value) => objects(value, pointer + "/a"),
        Schema::Object(fields) if !fields.is_empty() => {
            let inner = fields
                .iter()
                .flat_map(|field| objects(&field.schema, format!("{pointer}/{}", field.name)));
            let mut all: Vec<_> = inner.collect();
            all.push((pointer, fields));
            all
        }
        _ => Vec::new(),
    }
}
