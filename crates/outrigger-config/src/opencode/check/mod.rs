//! Values of opencode.json that have the wrong type.

pub(crate) mod keys;
pub(crate) mod unknown;

use outrigger_schema as schema;
use serde_json::Value;

use self::keys::CONFIG;
use crate::origin::{Positions, position_of};
use crate::redact::is_secret;
use crate::{ConfigError, ConfigProblem};

/// A value of the wrong type.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// Position.
    pub(crate) pointer: String,
    /// Expected value.
    pub(crate) expected: String,
    /// What is there.
    pub(crate) found: String,
}

impl Mismatch {
    /// Converts it to an error of the file.
    pub(crate) fn error(self, file: &str, positions: &Positions) -> ConfigError {
        let at = position_of(positions, &self.pointer);
        ConfigError::Type {
            file: file.into(),
            line: at.line,
            column: at.column,
            pointer: self.pointer,
            expected: self.expected,
            found: self.found,
        }
    }

    /// Converts it to a problem: the value is skipped.
    pub(crate) fn problem(self, file: &str) -> ConfigProblem {
        ConfigProblem {
            file: file.into(),
            message: format!("expected {}, found {}; skipped", self.expected, self.found),
            pointer: Some(self.pointer),
        }
    }
}

/// Returns everything in the document that has the wrong type, in the document's order.
pub(crate) fn document(value: &Value) -> Vec<Mismatch> {
    CONFIG
        .check(value)
        .into_iter()
        .map(Mismatch::from)
        .collect()
}

impl From<schema::Mismatch<'_>> for Mismatch {
    fn from(wrong: schema::Mismatch<'_>) -> Self {
        let pointer = wrong.pointer;
        // A mistake near a key or token must not print it.
        let secret = is_secret(&format!("{pointer}/")) || is_secret(&pointer);
        let found = match wrong.missing {
            Some(name) => format!("one without `{name}`"),
            None if secret => kind_of(wrong.found).into(),
            None => describe(wrong.found),
        };
        Self {
            pointer,
            expected: wrong.expected,
            found,
        }
    }
}

/// Describes a value briefly, without printing a long one.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= 30 => format!("{text:?}"),
        Value::String(_) => "a long text".into(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".into(),
    }
}

/// Describes the type of a value without its content.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn wrong_types_are_named() {
        let mut seen = String::new();
        for value in [
            json!({"model": 1}),
            json!({"share": "everyone"}),
            json!({"autoupdate": "always"}),
            json!({"plugin": "one"}),
            json!({"plugin": ["a", 2, ["b"], ["c", 1]]}),
            json!({"instructions": ["a", 2]}),
            json!({"permission": "maybe"}),
            json!({"permission": {"bash": {"git *": "yes"}, "edit": true}}),
            json!({"agent": {"a/b": {"mode": "main", "steps": 0, "temperature": "hot"}}}),
            json!({"command": {"x": {"description": "d"}}}),
            json!({"provider": {"p": {"options": {"timeout": true}, "models": {"m": {"limit": {"context": "big"}}}}}}),
            json!({"mcp": {"m": {"type": "stdio"}}}),
            json!({"tools": {"bash": "no"}}),
            json!({"snapshot": null}),
            json!([1, 2]),
            json!({"provider": {"p": {"options": {"apiKey": 123456}, "models": {"m": {"headers": "Bearer abc"}}}}}),
        ] {
            for wrong in document(&value) {
                seen += &format!(
                    "{}: expected {}, found {}\n",
                    wrong.pointer, wrong.expected, wrong.found
                );
            }
        }
        insta::assert_snapshot!(seen, @r#"
        /model: expected text, found 1
        /share: expected "manual", "auto" or "disabled", found "everyone"
        /autoupdate: expected true, false or "notify", found "always"
        /plugin: expected a list, found "one"
        /plugin/1: expected a plugin as text, or a list of the plugin and its options, found 2
        /plugin/2: expected a plugin as text, or a list of the plugin and its options, found a list of 1
        /plugin/3/1: expected an object, found 1
        /instructions/1: expected text, found 2
        /permission: expected "allow", "ask" or "deny", or an object of permissions with their rules, found "maybe"
        /permission/bash/git *: expected "allow", "ask" or "deny", found "yes"
        /permission/edit: expected "allow", "ask" or "deny", or an object of patterns with one of these each, found true
        /agent/a~1b/mode: expected "subagent", "primary" or "all", found "main"
        /agent/a~1b/steps: expected a whole number from 1, found 0
        /agent/a~1b/temperature: expected a number, found "hot"
        /command/x: expected an object with `template`, found one without `template`
        /provider/p/options/timeout: expected milliseconds as a whole number, or false, found true
        /provider/p/models/m/limit/context: expected a number, found "big"
        /mcp/m/type: expected "local" or "remote", found "stdio"
        /tools/bash: expected true or false, found "no"
        /snapshot: expected true or false, found null
        : expected an object, found a list of 2
        /provider/p/options/apiKey: expected text, found a number
        /provider/p/models/m/headers: expected an object, found a text
        "#);
    }

    #[test]
    fn right_types_and_unknown_keys_pass() {
        let value = json!({
            "unknown": [1, {"deep": null}], "$schema": "s", "autoupdate": "notify", "snapshot": true,
            "plugin": ["a", ["b", {"x": 1}]], "permission": {"bash": {"git *": "allow", "*": "ask"}, "my_tool": "deny"},
            "agent": {"a": {"steps": 4.0, "zork": 1, "permission": "ask", "tools": {"bash": false}}},
            "command": {"c": {"template": "t", "subtask": true}}, "formatter": false, "lsp": {"x": {}},
            "provider": {"p": {"npm": "n", "options": {"timeout": false, "custom": 1}}},
            "mcp": {"m": {"type": "local", "command": ["a"]}, "off": {"enabled": false}},
            "experimental": {"hook": 1}
        });
        assert!(document(&value).is_empty(), "{:?}", document(&value));
    }
}
