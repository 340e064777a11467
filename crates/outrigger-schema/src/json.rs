//! JSON Schema of schemas.

use serde_json::{Map, Value, json};

use crate::{Field, Format, Schema};

/// Options of writing JSON Schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// Objects have only the members that their schemas name.
    pub closed: bool,
    /// The location of named schemas: `#/components/schemas/`. Without it they are inlined.
    pub named: Option<&'static str>,
}

impl Writer {
    /// Returns the JSON Schema of a schema.
    #[must_use]
    pub fn value(self, schema: &Schema) -> Value {
        match schema {
            Schema::Any => json!({}),
            Schema::Null => json!({ "type": "null" }),
            Schema::Boolean => json!({ "type": "boolean" }),
            Schema::Exactly(which) => json!({ "const": which }),
            Schema::String => json!({ "type": "string" }),
            Schema::Text(format) => text(*format),
            Schema::Word([word]) => json!({ "const": word }),
            Schema::Word(words) => json!({ "enum": words }),
            Schema::Number => json!({ "type": "number" }),
            Schema::Integer { min, max } => integer(*min, *max),
            Schema::List(item) => json!({ "type": "array", "items": self.value(item) }),
            Schema::Pair(first, second) => json!({
                "type": "array", "prefixItems": [self.value(first), self.value(second)],
                "minItems": 2, "maxItems": 2,
            }),
            Schema::Map(values) => {
                json!({ "type": "object", "additionalProperties": self.value(values) })
            }
            Schema::Object([]) => json!({ "type": "object" }),
            Schema::Object(fields) => self.object(fields),
            Schema::AnyOf(all) => {
                json!({ "anyOf": all.iter().map(|one| self.value(one)).collect::<Vec<_>>() })
            }
            Schema::Named(name, inner) => match self.named {
                Some(place) => json!({ "$ref": format!("{place}{name}") }),
                None => self.value(inner),
            },
            Schema::Of(inner) | Schema::Said(_, inner) => self.value(inner),
        }
    }

    /// Returns the JSON Schema of an object with these members.
    #[must_use]
    pub fn object(self, fields: &[Field]) -> Value {
        let mut properties = Map::new();
        for field in fields {
            let mut value = self.value(&field.schema);
            let about = field.about();
            if let Some(members) = value.as_object_mut().filter(|_| !about.is_empty()) {
                members.insert("description".to_owned(), about.into());
            }
            for name in [field.name].iter().chain(field.aliases) {
                properties.insert((*name).to_owned(), value.clone());
            }
        }
        let mut object = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), properties.into()),
        ]);
        let required: Vec<&str> = fields
            .iter()
            .filter(|field| field.required)
            .map(|field| field.name)
            .collect();
        if !required.is_empty() {
            object.insert("required".to_owned(), json!(required));
        }
        if self.closed {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        object.into()
    }
}

fn text(format: Format) -> Value {
    match format {
        Format::NotEmpty | Format::Name | Format::Program | Format::Folder => {
            json!({ "type": "string", "minLength": 1 })
        }
        Format::Variable => json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }),
    }
}

fn integer(min: i64, max: i64) -> Value {
    let mut value = Map::from_iter([("type".to_owned(), json!("integer"))]);
    if min > i64::MIN {
        value.insert("minimum".to_owned(), json!(min));
    }
    if max < i64::MAX {
        value.insert("maximum".to_owned(), json!(max));
    }
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    static PART: Schema = Schema::Named("Part", &schema!({ id: string }));

    #[test]
    fn schemas_are_json_schema() {
        let writer = Writer {
            closed: false,
            named: Some("#/components/schemas/"),
        };
        for (schema, want) in [
            (
                schema!([string]),
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            (schema!("a" | "b"), json!({"enum": ["a", "b"]})),
            (schema!("a"), json!({"const": "a"})),
            (
                const { schema!([PART | null]) },
                json!({"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Part"}, {"type": "null"}]}}),
            ),
            (
                schema!({a: {x_1: true}, b?: any}),
                json!({"type": "object", "required": ["a"], "properties": {
                    "a": {"type": "object", "required": ["x_1"], "properties": {"x_1": {"const": true}}}, "b": {}}}),
            ),
            (
                schema!({ number | boolean }),
                json!({"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}}),
            ),
            (schema!({}), json!({"type": "object"})),
            (
                schema!({ { any } }),
                json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {}}}),
            ),
            (
                schema!({
                    /// What it is
                    /// called.
                    name: string
                }),
                json!({"type": "object", "properties": {"name": {"type": "string", "description": "What it is called."}}, "required": ["name"]}),
            ),
        ] {
            assert_eq!(writer.value(&schema), want);
        }
        let closed = Writer {
            closed: true,
            named: None,
        };
        assert_eq!(
            closed.value(&PART),
            json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": false})
        );
    }
}
