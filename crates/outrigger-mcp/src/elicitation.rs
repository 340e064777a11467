//! A form that a server asks the user to fill in (MCP, Elicitation): a flat object of texts, numbers, booleans, and choices.

use serde_json::{Map, Number, Value, json};

/// Maximum number of fields; larger forms are refused.
const MAX_FIELDS: usize = 20;
/// Maximum number of choices of a field.
const MAX_CHOICES: usize = 100;
/// Maximum characters of a displayed text.
const MAX_TEXT: usize = 2_000;

/// A form.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    /// The server's message to the user.
    pub message: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its key in the answer.
    pub name: String,
    /// The displayed title.
    pub title: String,
    /// The displayed description.
    pub description: String,
    /// Its type.
    pub kind: FieldKind,
    /// Whether the field must be filled in.
    pub is_required: bool,
    /// The value if nothing is filled in (SEP-1034).
    pub default: Option<Value>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text,
    /// A number.
    Number {
        /// It must be an integer.
        is_whole: bool,
    },
    /// Yes or no.
    Boolean,
    /// Values, each with its displayed title.
    Choice {
        /// The values.
        choices: Vec<(String, String)>,
        /// More than one may be chosen.
        is_multiple: bool,
    },
}

impl Elicitation {
    /// Reads the parameters of `elicitation/create`.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(params: &Value) -> Result<Self, String> {
        if params.get("mode").is_some_and(|mode| mode != "form") {
            return Err("only forms are supported".to_owned());
        }
        let schema = &params["requestedSchema"];
        let properties = schema["properties"]
            .as_object()
            .ok_or("requestedSchema has no properties")?;
        if properties.len() > MAX_FIELDS {
            return Err(format!("a form has at most {MAX_FIELDS} fields"));
        }
        let required = |name: &str| {
            let list = schema["required"].as_array();
            list.is_some_and(|list| list.iter().any(|one| one == name))
        };
        let fields = properties
            .iter()
            .map(|(name, property)| field(name, property, required(name)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            message: text(&params["message"]),
            fields,
        })
    }

    /// Converts the user's inputs, by the name of the field, to an answer; `None` leaves the default.
    ///
    /// # Errors
    /// What is invalid, for the user.
    pub fn filled(
        &self,
        mut words: impl FnMut(&Field) -> Option<Vec<String>>,
    ) -> Result<Value, String> {
        let mut content = Map::new();
        for field in &self.fields {
            let said = words(field).unwrap_or_default();
            let said: Vec<&str> = said.iter().map(|word| word.trim()).collect();
            let said: Vec<&str> = said.into_iter().filter(|word| !word.is_empty()).collect();
            let value = match said.as_slice() {
                [] => field.default.clone(),
                said => Some(field.value(said)?),
            };
            match value {
                Some(value) => {
                    content.insert(field.name.clone(), value);
                }
                None if field.is_required => {
                    return Err(format!("{} must be filled in", field.title));
                }
                None => {}
            }
        }
        Ok(Value::Object(content))
    }
}

impl Field {
    fn value(&self, said: &[&str]) -> Result<Value, String> {
        let first = said.first().copied().unwrap_or_default();
        let wrong = |what: &str| format!("{} must be {what}, and is {first:?}", self.title);
        match &self.kind {
            FieldKind::Text => Ok(said.join(", ").into()),
            FieldKind::Number { is_whole: true } => {
                let number = first.parse::<i64>();
                number.map(Value::from).map_err(|_| wrong("a whole number"))
            }
            FieldKind::Number { is_whole: false } => first
                .parse::<f64>()
                .ok()
                .and_then(Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| wrong("a number")),
            FieldKind::Boolean => match first.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => Ok(true.into()),
                "no" | "n" | "false" => Ok(false.into()),
                _ => Err(wrong("yes or no")),
            },
            FieldKind::Choice {
                choices,
                is_multiple,
            } => {
                let chosen = said
                    .iter()
                    .map(|word| {
                        choices
                            .iter()
                            .find(|(value, shown)| value == word || shown == word)
                            .map(|(value, _)| json!(value))
                            .ok_or_else(|| format!("{} has no choice {word:?}", self.title))
                    })
                    .collect::<Result<Vec<Value>, _>>()?;
                if *is_multiple {
                    Ok(Value::Array(chosen))
                } else {
                    Ok(chosen.into_iter().next().unwrap_or_default())
                }
            }
        }
    }
}

fn field(name: &str, property: &Value, is_required: bool) -> Result<Field, String> {
    let kind = match property["type"].as_str() {
        Some("boolean") => FieldKind::Boolean,
        Some("integer") => FieldKind::Number { is_whole: true },
        Some("number") => FieldKind::Number { is_whole: false },
        Some("array") => FieldKind::Choice {
            choices: choices(&property["items"])
                .ok_or_else(|| format!("the list `{name}` has no choices"))?,
            is_multiple: true,
        },
        Some("string") => match choices(property) {
            Some(choices) => FieldKind::Choice {
                choices,
                is_multiple: false,
            },
            None => FieldKind::Text,
        },
        _ => return Err(format!("`{name}` is of a type that forms do not have")),
    };
    let title = text(&property["title"]);
    Ok(Field {
        name: name.to_owned(),
        title: if title.is_empty() {
            name.to_owned()
        } else {
            title
        },
        description: text(&property["description"]),
        default: property
            .get("default")
            .filter(|value| fits(&kind, value))
            .cloned(),
        kind,
        is_required,
    })
}

/// Returns whether a default has the type of its field. Another one would lead to an answer that the form does not allow.
fn fits(kind: &FieldKind, value: &Value) -> bool {
    match kind {
        FieldKind::Text => value.is_string(),
        FieldKind::Number { is_whole: true } => value.is_i64() || value.is_u64(),
        FieldKind::Number { is_whole: false } => value.is_number(),
        FieldKind::Boolean => value.is_boolean(),
        FieldKind::Choice {
            choices,
            is_multiple,
        } => {
            let known = |value: &Value| choices.iter().any(|(known, _)| value == known.as_str());
            match value {
                Value::Array(list) => *is_multiple && list.iter().all(known),
                value => !is_multiple && known(value),
            }
        }
    }
}

/// Returns the choices of a schema: `enum`, with the older `enumNames`, or `oneOf` and `anyOf` with titles (SEP-1330).
fn choices(schema: &Value) -> Option<Vec<(String, String)>> {
    if let Some(list) = schema["enum"].as_array() {
        let shown = |at: usize, value: &str| {
            schema["enumNames"]
                .get(at)
                .and_then(Value::as_str)
                .unwrap_or(value)
                .to_owned()
        };
        let choices = list.iter().take(MAX_CHOICES).enumerate();
        return choices
            .map(|(at, value)| value.as_str().map(|it| (it.to_owned(), shown(at, it))))
            .collect();
    }
    let list = schema["oneOf"].as_array().or(schema["anyOf"].as_array())?;
    list.iter()
        .take(MAX_CHOICES)
        .map(|one| {
            let value = one["const"].as_str()?;
            let shown = one["title"].as_str().unwrap_or(value);
            Some((value.to_owned(), shown.to_owned()))
        })
        .collect()
}

/// Sanitizes an untrusted text for a terminal.
fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default().trim().chars();
    text.map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .take(MAX_TEXT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value) -> Elicitation {
        Elicitation::read(&json!({
            "message": "Fill\u{1b}[2J in",
            "requestedSchema": {"type": "object", "properties": properties, "required": ["name"]},
        }))
        .unwrap()
    }

    #[test]
    fn words_become_values_and_defaults_fill_in() {
        let form = form(&json!({
            "name": {"type": "string", "default": "John"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "on": {"type": "boolean", "default": true},
            "status": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"], "default": "a"},
            "kinds": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}, {"const": "y"}]}},
            "bad": {"type": "integer", "default": "no number"},
        }));
        assert_eq!(form.message, "Fill [2J in");
        assert_eq!(
            form.filled(|_| None),
            Ok(json!({"name": "John", "age": 30, "score": 95.5, "on": true, "status": "a"}))
        );
        let words = |field: &Field| {
            let words: &[&str] = match field.name.as_str() {
                "name" => &["Ada "],
                "age" => &["36"],
                "score" => &["1"],
                "on" => &["No"],
                "status" => &["Second"],
                "kinds" => &["X", "y"],
                _ => &[],
            };
            Some(words.iter().map(|word| (*word).to_owned()).collect())
        };
        assert_eq!(
            form.filled(words),
            Ok(
                json!({"name": "Ada", "age": 36, "score": 1.0, "on": false, "status": "b", "kinds": ["x", "y"]})
            )
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let form = form(&json!({
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "status": {"type": "string", "enum": ["a"]},
        }));
        let of = |name: &'static str, word: &'static str| {
            let answer = move |field: &Field| {
                let word = if field.name == name { word } else { "" };
                let word = if word.is_empty() && field.name == "name" && name != "name" {
                    "x"
                } else {
                    word
                };
                Some(vec![word.to_owned()])
            };
            form.filled(answer).unwrap_err()
        };
        assert_eq!(of("name", ""), "name must be filled in");
        assert_eq!(
            of("age", "1.5"),
            r#"age must be a whole number, and is "1.5""#
        );
        assert_eq!(of("status", "b"), r#"status has no choice "b""#);
        for params in [
            json!({"mode": "url", "url": "https://a"}),
            json!({"message": "m"}),
            json!({"requestedSchema": {"properties": {"a": {"type": "object"}}}}),
        ] {
            assert!(Elicitation::read(&params).is_err(), "{params}");
        }
    }
}
