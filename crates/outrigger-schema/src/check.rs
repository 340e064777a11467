//! Validation of values.

use serde_json::Value;

use crate::{Field, Schema};

/// A value that does not match.
#[derive(Debug)]
pub struct Mismatch<'v> {
    /// JSON pointer to the value.
    pub pointer: String,
    /// The expected value, in words.
    pub expected: String,
    /// The actual value.
    pub found: &'v Value,
    /// The missing member, if one is missing.
    pub missing: Option<&'static str>,
}

/// A member that the schema of its object does not name.
#[derive(Debug)]
pub struct UnknownMember<'v> {
    /// JSON pointer to the member.
    pub pointer: String,
    /// Its key.
    pub key: &'v str,
    /// The members that are named.
    pub fields: &'static [Field],
}

impl Schema {
    /// Returns all mismatches in a value, in its order. Members without a schema may have any value.
    #[must_use]
    pub fn check<'v>(&self, value: &'v Value) -> Vec<Mismatch<'v>> {
        let mut wrong = Vec::new();
        self.walk(value, "", &mut wrong);
        wrong
    }

    fn walk<'v>(&self, value: &'v Value, pointer: &str, wrong: &mut Vec<Mismatch<'v>>) {
        match (self.plain(), value) {
            (Self::Map(member), Value::Object(map)) => {
                for (key, value) in map {
                    member.walk(value, &child(pointer, key), wrong);
                }
            }
            (Self::Object(fields), Value::Object(map)) => {
                wrong.extend(missing(fields, map, value, pointer));
                for (key, value) in map {
                    if let Some(field) = fields.iter().find(|field| field.is_called(key)) {
                        field.schema.walk(value, &child(pointer, key), wrong);
                    }
                }
            }
            (Self::List(item), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    item.walk(value, &format!("{pointer}/{index}"), wrong);
                }
            }
            (Self::Pair(first, second), Value::Array(items)) if items.len() == 2 => {
                for (index, (item, value)) in [first, second].into_iter().zip(items).enumerate() {
                    item.walk(value, &format!("{pointer}/{index}"), wrong);
                }
            }
            (Self::AnyOf(all), _) => match all.iter().find(|one| one.has_shape_of(value)) {
                // For a misspelled word the message lists every valid value.
                Some(one) if value.is_object() || value.is_array() => {
                    one.walk(value, pointer, wrong);
                }
                Some(one) if one.fits(value) => {}
                _ => wrong.push(self.mismatch(value, pointer)),
            },
            _ if self.fits(value) => {}
            _ => wrong.push(self.mismatch(value, pointer)),
        }
    }

    /// Returns all unknown members of objects, in the value's order. A value of any type has none.
    #[must_use]
    pub fn unknown<'v>(&self, value: &'v Value) -> Vec<UnknownMember<'v>> {
        let mut found = Vec::new();
        self.look(value, "", &mut found);
        found
    }

    fn look<'v>(&self, value: &'v Value, pointer: &str, found: &mut Vec<UnknownMember<'v>>) {
        match (self.plain(), value) {
            (Self::Map(member), Value::Object(map)) => {
                for (key, value) in map {
                    member.look(value, &child(pointer, key), found);
                }
            }
            (Self::Object(fields), Value::Object(map)) => {
                for (key, value) in map {
                    let pointer = child(pointer, key);
                    match fields.iter().find(|field| field.is_called(key)) {
                        Some(field) => field.schema.look(value, &pointer, found),
                        None => found.push(UnknownMember {
                            pointer,
                            key,
                            fields,
                        }),
                    }
                }
            }
            (Self::List(item), Value::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    item.look(value, &format!("{pointer}/{index}"), found);
                }
            }
            (Self::AnyOf(all), _) => {
                if let Some(one) = all.iter().find(|one| one.has_shape_of(value)) {
                    one.look(value, pointer, found);
                }
            }
            _ => {}
        }
    }

    fn mismatch<'v>(&self, found: &'v Value, pointer: &str) -> Mismatch<'v> {
        Mismatch {
            pointer: pointer.to_owned(),
            expected: self.expected(),
            found,
            missing: None,
        }
    }

    /// Returns whether the JSON type is right, so that a nested mismatch gives the better message.
    fn has_shape_of(&self, value: &Value) -> bool {
        match self.plain() {
            Self::Map(_) | Self::Object(_) => value.is_object(),
            Self::List(_) => value.is_array(),
            Self::Pair(..) => value.as_array().is_some_and(|items| items.len() == 2),
            plain => plain.fits(value),
        }
    }

    /// Returns whether a value without members matches.
    fn fits(&self, value: &Value) -> bool {
        match self.plain() {
            Self::Any => true,
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Exactly(which) => value.as_bool() == Some(*which),
            Self::String => value.is_string(),
            Self::Text(format) => value.as_str().is_some_and(|text| format.fits(text)),
            Self::Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Self::Number => value.is_number(),
            Self::Integer { min, max } => {
                integer(value).is_some_and(|number| (*min..=*max).contains(&number))
            }
            _ => false,
        }
    }
}

fn missing<'v>(
    fields: &'static [Field],
    map: &serde_json::Map<String, Value>,
    found: &'v Value,
    pointer: &str,
) -> Vec<Mismatch<'v>> {
    let missing = fields
        .iter()
        .filter(|field| field.required && !map.keys().any(|key| field.is_called(key)));
    missing
        .map(|field| Mismatch {
            pointer: pointer.to_owned(),
            expected: format!("an object with `{}`", field.name),
            found,
            missing: Some(field.name),
        })
        .collect()
}

/// Returns the JSON pointer of a member (RFC 6901).
#[must_use]
pub fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns a non-negative integer, also if it is written as `4.0`, which JavaScript does not distinguish.
#[must_use]
pub fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value
            .as_f64()
            .filter(|n| n.fract() == 0.0 && (0.0..9.0e15).contains(n))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range and whole, checked above"
        )]
        Some(number as u64)
    })
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| i64::try_from(whole(value)?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{COUNT, Format, POSITIVE, schema};
    use serde_json::json;

    static NAME: Schema = Schema::Text(Format::Name);
    static TREE: Schema = schema!({name: NAME, "odd-key"?: [string, {any}], children?: [TREE], limit?: POSITIVE | false});

    #[test]
    fn an_alias_is_the_member() {
        let schema = schema!({
            #[alias = "dependsOn"]
            depends_on: [string],
        });
        let number = json!({"dependsOn": 5});
        assert_eq!(schema.check(&number)[0].pointer, "/dependsOn");
        for fits in [json!({"dependsOn": []}), schema.example()] {
            assert!(schema.check(&fits).is_empty(), "{fits}");
        }
        assert!(TREE.check(&json!({"name": NAME.example()})).is_empty());
    }

    #[test]
    fn each_mistake_has_its_place() {
        let value = json!({
            "name": "a", "odd-key": ["x", 1], "more": 1,
            "children": [{"name": "5"}, {"limit": true}, {"name": "b", "limit": 2.0}, {"name": "c", "limit": 0}],
        });
        let seen: Vec<String> = TREE
            .check(&value)
            .iter()
            .map(|it| format!("{} {} {:?}", it.pointer, it.expected, it.missing))
            .collect();
        assert_eq!(
            seen,
            [
                "/odd-key/1 an object None",
                "/children/0/name a name None",
                "/children/1 an object with `name` Some(\"name\")",
                "/children/1/limit a whole number from 1 or false None",
                "/children/3/limit a whole number from 1 or false None",
            ]
        );
    }

    #[test]
    fn members_that_nothing_names() {
        let value = json!({
            "nmae": 1, "odd-key": ["x", {"y": 1}], "limit": 1,
            "children": [{"name": "a", "limits": {"b": 1}}, {"name": "b", "children": [{"naem/": 1}]}],
        });
        let seen: Vec<String> = TREE
            .unknown(&value)
            .into_iter()
            .map(|it| format!("{} {}", it.pointer, it.key))
            .collect();
        assert_eq!(
            seen,
            [
                "/nmae nmae",
                "/children/0/limits limits",
                "/children/1/children/0/naem~1 naem/",
            ]
        );
        let loose = schema!({any} | {a?: {b?: boolean}});
        assert!(loose.unknown(&json!({"c": 1})).is_empty());
    }

    #[test]
    fn whole_numbers_of_any_spelling() {
        for (value, fits) in [
            (json!(4), true),
            (json!(4.0), true),
            (json!(4.5), false),
            (json!(-4), false),
            (json!("4"), false),
        ] {
            assert_eq!(COUNT.check(&value).is_empty(), fits, "{value}");
        }
        assert!(schema!(integer).check(&json!(-4)).is_empty());
    }
}
