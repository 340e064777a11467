//! Checks arguments against a tool's JSON Schema, with messages that a model can act on.

use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use outrigger_schema::cost::Cost;
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
    /// For another's tool: bounds the checks.
    cost: Option<Cost>,
}

/// Steps that an expression may go back in a text.
const MAX_BACKTRACKS: usize = 50_000;
/// Nesting of a schema that the stack of any thread has room for, and the stack that has room for the deepest one.
const FLAT: usize = 100;
const DEEP_STACK: usize = 256 << 20;

/// Runs something recursive that gets `levels` deep where there is room for it.
fn with_stack<T: Send>(levels: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if levels <= FLAT {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEEP_STACK);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|e| e.to_string())?;
        thread
            .join()
            .map_err(|_| "the check of the schema failed".to_owned())
    })
}

impl Compiled {
    /// Compiles it at once. References to other documents are refused: nothing is fetched. A schema that would be too
    /// large when its references are followed is refused.
    fn now(schema: &Value) -> Result<Self, String> {
        let cost = Cost::new(schema)?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
        let options = jsonschema::options().with_pattern_options(patterns);
        let compile = || options.build(schema).map_err(|e| e.to_string());
        let validator = with_stack(cost.levels(), compile)??;
        Ok(Self {
            bundled: None,
            validator: OnceLock::from(Ok(validator)),
            cost: Some(cost),
        })
    }

    /// Compiles it later: it is one of our constants, which `every_bundled_schema_compiles` checks.
    fn later(schema: &Value) -> Self {
        Self {
            bundled: Some(schema.clone()),
            validator: OnceLock::new(),
            cost: None,
        }
    }

    /// Returns the first things that are wrong with a value.
    fn errors(&self, value: &Value) -> Result<Vec<String>, String> {
        let levels = match &self.cost {
            Some(cost) => cost.of(value)?,
            None => 0,
        };
        let validator = self.get()?;
        with_stack(levels, || {
            validator
                .iter_errors(value)
                .take(MAX_ERRORS)
                .map(|error| describe(&error, value))
                .collect()
        })
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
        let errors = self.0.errors(input)?;
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
        let errors = self.schema.errors(value)?;
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

    /// Without limits the first takes 2^45 steps, and the others overflow the stack.
    #[test]
    fn schemas_of_strangers_are_bounded() {
        let chain = |count: usize, def: &dyn Fn(Value) -> Value| {
            let mut defs = serde_json::Map::new();
            for n in 0..count {
                let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
                defs.insert(format!("d{n}"), def(next));
            }
            defs.insert(format!("d{count}"), json!({"type": "string"}));
            json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}})
        };
        let input = json!({"a": "x"});
        let bomb = chain(45, &|next| json!({"allOf": [next, next]}));
        let reason = complaint(bomb, input.clone());
        assert!(reason.contains("more than 2000000 steps"), "{reason}");
        let long = chain(20_000, &|next| json!({"not": next}));
        assert!(Schema::compile(&long).is_err());
        let deep = chain(1200, &|next| json!({"not": next}));
        let reason = complaint(deep, input.clone());
        assert!(reason.contains("nested more than 300 deep"), "{reason}");
        let usable = chain(120, &|next| json!({"allOf": [next]}));
        assert!(Schema::compile(&usable).unwrap().check(&input).is_ok());
        let slow = json!({"properties": {"a": {"pattern": "^((?=a)a|a)+c$"}}});
        let text = "a".repeat(200);
        assert!(
            Schema::compile(&slow)
                .unwrap()
                .check(&json!({"a": text}))
                .is_err()
        );
    }

    #[test]
    fn a_schema_that_would_have_to_be_fetched_is_refused() {
        assert!(Schema::compile(&json!({"$ref":"http://example.invalid/x.json"})).is_err());
        assert!(Schema::compile(&json!({"type":"nonsense"})).is_err());
    }
}
