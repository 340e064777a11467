//! The notation of `forms.txt` and `bodies.txt`, and JSON Schema made of it: `{a: T, b?: T}` an object, `{T}` a map, `T[]` a
//! list, `A | B` one of several, names in capitals other forms, `any` anything.

use serde_json::{Map, Value, json};

/// The schema of a form; `None` where the text is not one.
pub(super) fn schema(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let schema = reader.alternatives()?;
    reader.rest.trim().is_empty().then_some(schema)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> Option<&'t str> {
        let text = self.rest.trim_start();
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn alternatives(&mut self) -> Option<Value> {
        let mut all = vec![self.list()?];
        while self.takes("|") {
            all.push(self.list()?);
        }
        if all.len() == 1 {
            return all.pop();
        }
        let values: Vec<Value> = all
            .iter()
            .filter_map(|one| one.get("const"))
            .cloned()
            .collect();
        Some(if values.len() == all.len() {
            json!({ "enum": values })
        } else {
            json!({ "anyOf": all })
        })
    }

    fn list(&mut self) -> Option<Value> {
        let mut one = self.one()?;
        while self.takes("[]") {
            one = json!({ "type": "array", "items": one });
        }
        Some(one)
    }

    fn one(&mut self) -> Option<Value> {
        if self.takes("(") {
            let inner = self.alternatives()?;
            return self.takes(")").then_some(inner);
        }
        if self.takes("{") {
            return self.object();
        }
        if self.takes("\"") {
            let (text, rest) = self.rest.split_once('"')?;
            self.rest = rest;
            return Some(json!({ "const": text }));
        }
        Some(match self.word()? {
            "any" => json!({}),
            "null" => json!({ "type": "null" }),
            "true" => json!({ "const": true }),
            "false" => json!({ "const": false }),
            kind @ ("string" | "number" | "integer" | "boolean") => json!({ "type": kind }),
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
                json!({ "$ref": format!("#/components/schemas/{name}") })
            }
            _ => return None,
        })
    }

    fn object(&mut self) -> Option<Value> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        if self.takes("}") {
            return Some(json!({ "type": "object" }));
        }
        loop {
            let before = self.rest;
            let name = self.word();
            let optional = self.takes("?");
            let (Some(name), true) = (name, self.takes(":")) else {
                self.rest = before;
                let values = self.alternatives()?;
                let map = json!({ "type": "object", "additionalProperties": values });
                return self.takes("}").then_some(map);
            };
            if !optional {
                required.push(name);
            }
            properties.insert(name.to_owned(), self.alternatives()?);
            if self.takes("}") {
                break;
            }
            if !self.takes(",") {
                return None;
            }
        }
        let mut object = json!({ "type": "object", "properties": properties });
        if !required.is_empty()
            && let Some(fields) = object.as_object_mut()
        {
            fields.insert("required".to_owned(), json!(required));
        }
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_schemas() {
        for (text, want) in [
            (
                "string[]",
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            ("\"a\" | \"b\"", json!({"enum": ["a", "b"]})),
            (
                "(Part | null)[]",
                json!({"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Part"}, {"type": "null"}]}}),
            ),
            (
                "{a: {x_1: true}, b?: any}",
                json!({"type": "object", "required": ["a"], "properties": {
                    "a": {"type": "object", "required": ["x_1"], "properties": {"x_1": {"const": true}}}, "b": {}}}),
            ),
            (
                "{number | boolean}",
                json!({"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}}),
            ),
            ("{}", json!({"type": "object"})),
        ] {
            assert_eq!(schema(text).unwrap(), want, "{text}");
        }
        for text in [
            "",
            "word",
            "{a: string",
            "string]",
            "(string",
            "{a: string b: string}",
            "\"a",
            "{a?}",
        ] {
            assert_eq!(schema(text), None, "{text}");
        }
    }
}
