//! Checks arguments against a tool's JSON Schema, with messages that a model can act on.

use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

// More of them do not help a model and cost tokens.
const MAX_ERRORS: usize = 5;
// Maximum length of a quoted value.
const MAX_QUOTED: usize = 120;

/// A schema that is compiled once, by [`jsonschema`].
struct Compiled {
    /// For a bundled tool: compiled on first use. Most are not used in a run, and compiling them all slows down the start.
    bundled: Option<Value>,
    validator: OnceLock<Result<Validator, String>>,
}

impl Compiled {
    /// Compiles it at once. References to other documents are refused: nothing is fetched.
    fn now(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(schema).map_err(|e| e.to_string())?;
        Ok(Self {
            bundled: None,
            validator: OnceLock::from(Ok(validator)),
        })
    }

    /// Compiles it later: it is one of our constants, which `every_bundled_schema_compiles` checks.
    fn later(schema: &Value) -> Self {
        Self {
            bundled: Some(schema.clone()),
            validator: OnceLock::new(),
        }
    }

    fn get(&self) -> Result<&Validator, String> {
        let validator = self.validator.get_or_init(|| {
            let schema = self.bundled.as_ref().unwrap_or(&Value::Null);
            // They need no keyword of a later draft, whose own schema is eight documents to compile.
            let options = jsonschema::options().with_draft(Draft::Draft7);
            options.build(schema).map_err(|e| e.to_string())
        });
        validator.as_ref().map_err(Clone::clone)
    }
}

/// The schema of a tool's arguments.
pub(crate) struct Schema(Compiled);

impl Schema {
    /// Compiles it. References to other documents are refused: nothing is fetched.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        Compiled::now(schema).map(Self)
    }

    /// Creates the schema of a bundled tool.
    pub(crate) fn of_bundled(schema: &Value) -> Self {
        Self(Compiled::later(schema))
    }

    /// Checks the arguments and returns what is wrong with them, in OpenCode's form: `SchemaError(Missing key\n  at
    /// ["command"]).`
    pub(crate) fn check(&self, input: &Value) -> Result<(), String> {
        if !input.is_object() {
            return Err(format!(
                "SchemaError(Expected object, got {}).",
                quote(input)
            ));
        }
        let errors: Vec<String> = self
            .0
            .get()?
            .iter_errors(input)
            .take(MAX_ERRORS)
            .map(|error| describe(&error, input))
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(format!("SchemaError({}).", errors.join("\n")))
    }
}

/// The schema of a tool's answer. The answer is a text: if the schema allows a string at its root, the text itself is
/// validated, otherwise the JSON that it contains.
pub(crate) struct OutputSchema {
    schema: Compiled,
    plain: bool,
}

impl OutputSchema {
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        Compiled::now(schema).map(|compiled| Self::new(schema, compiled))
    }

    /// Creates the schema of a bundled tool.
    pub(crate) fn of_bundled(schema: &Value) -> Self {
        Self::new(schema, Compiled::later(schema))
    }

    fn new(schema: &Value, compiled: Compiled) -> Self {
        let kind = schema.get("type");
        let plain = match kind {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
            Some(kind) => kind == "string",
            None => false,
        };
        Self {
            schema: compiled,
            plain,
        }
    }

    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        let value = if self.plain {
            Value::String(text.to_owned())
        } else {
            serde_json::from_str(text)
                .map_err(|error| format!("not JSON ({error}): {}", cut(text)))?
        };
        self.check_value(&value)
    }

    /// Like [`Self::check`], for an answer that is not text.
    pub(crate) fn check_value(&self, value: &Value) -> Result<(), String> {
        let errors = self.schema.get()?.iter_errors(value).take(MAX_ERRORS);
        let errors: Vec<String> = errors.map(|error| describe(&error, value)).collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(errors.join("\n"))
    }
}

fn describe(error: &ValidationError<'_>, input: &Value) -> String {
    let mut path = place(&error.instance_path().to_string(), input);
    let what = match error.kind() {
        ValidationErrorKind::Required { property } => {
            path.push_str(&format!("[{property}]"));
            "Missing key".to_owned()
        }
        ValidationErrorKind::Type { kind } => {
            format!("Expected {}, got {}", types(kind), quote(error.instance()))
        }
        ValidationErrorKind::Minimum { limit } => format!(
            "Expected a value greater than or equal to {limit}, got {}",
            quote(error.instance())
        ),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!(
            "Expected a value greater than {limit}, got {}",
            quote(error.instance())
        ),
        ValidationErrorKind::Maximum { limit } => format!(
            "Expected a value less than or equal to {limit}, got {}",
            quote(error.instance())
        ),
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options
                .as_array()
                .map(|list| list.iter().map(Value::to_string).collect())
                .unwrap_or_default();
            format!(
                "Expected {}, got {}",
                options.join(" | "),
                quote(error.instance())
            )
        }
        _ => cut(&error.to_string()),
    };
    if path.is_empty() {
        what
    } else {
        format!("{what}\n  at {path}")
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(many) => many
            .iter()
            .map(|t| t.to_string())
            .collect::<Vec<_>>()
            .join(" | "),
    }
}

// Writes `/todos/0/status` as `["todos"][0]["status"]`; a number is an index only if the value there is an array.
fn place(pointer: &str, input: &Value) -> String {
    let mut out = String::new();
    let mut here = Some(input);
    for token in pointer.split('/').skip(1) {
        let key = token.replace("~1", "/").replace("~0", "~");
        match (here, key.parse::<usize>()) {
            (Some(Value::Array(items)), Ok(index)) => {
                out.push_str(&format!("[{index}]"));
                here = items.get(index);
            }
            _ => {
                out.push_str(&format!("[{}]", Value::String(key.clone())));
                here = here.and_then(|v| v.get(&key));
            }
        }
    }
    out
}

fn quote(value: &Value) -> String {
    cut(&value.to_string())
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_QUOTED {
        return text.to_owned();
    }
    let head: String = text.chars().take(MAX_QUOTED).collect();
    format!("{head}…")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaint(schema: Value, input: Value) -> String {
        Schema::compile(&schema).unwrap().check(&input).unwrap_err()
    }

    #[test]
    fn messages_name_the_argument_as_opencode_does() {
        let bash = json!({"type":"object","properties":{"command":{"type":"string"},
            "timeout":{"type":"integer","exclusiveMinimum":0}},"required":["command"]});
        let todos = json!({"type":"object","properties":{"todos":{"type":"array","items":{"type":"object",
            "properties":{"status":{"type":"string"}},"required":["status"]}}}});
        let format =
            json!({"type":"object","properties":{"format":{"enum":["text","markdown","html"]}}});
        for (schema, input, want) in [
            (
                &bash,
                json!({}),
                "SchemaError(Missing key\n  at [\"command\"]).",
            ),
            (
                &bash,
                json!({"command":5}),
                "SchemaError(Expected string, got 5\n  at [\"command\"]).",
            ),
            (
                &bash,
                json!({"command":"x","timeout":0}),
                "SchemaError(Expected a value greater than 0, got 0\n  at [\"timeout\"]).",
            ),
            (
                &todos,
                json!({"todos":[{"status":"a"},{}]}),
                "SchemaError(Missing key\n  at [\"todos\"][1][\"status\"]).",
            ),
            (
                &format,
                json!({"format":"pdf"}),
                "SchemaError(Expected \"text\" | \"markdown\" | \"html\", got \"pdf\"\n  at [\"format\"]).",
            ),
            (
                &bash,
                json!("ls"),
                "SchemaError(Expected object, got \"ls\").",
            ),
            (
                &bash,
                json!(["ls"]),
                "SchemaError(Expected object, got [\"ls\"]).",
            ),
            (
                &bash,
                Value::Null,
                "SchemaError(Expected object, got null).",
            ),
        ] {
            assert_eq!(complaint(schema.clone(), input), want);
        }
    }

    #[test]
    fn a_long_value_is_quoted_in_part_and_errors_are_few() {
        let schema =
            json!({"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}});
        let long = complaint(schema.clone(), json!({"a":[vec![1; 5000]]}));
        assert!(long.len() < 400, "{long}");
        let many = complaint(schema, json!({"a": vec![1; 50]}));
        assert_eq!(many.matches("Expected string").count(), MAX_ERRORS);
    }

    #[test]
    fn a_schema_that_would_have_to_be_fetched_is_refused() {
        assert!(Schema::compile(&json!({"$ref":"http://example.invalid/x.json"})).is_err());
        assert!(Schema::compile(&json!({"type":"nonsense"})).is_err());
    }
}
