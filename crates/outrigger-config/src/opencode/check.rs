//! Types of the keys of opencode.json that are known. Unknown keys may hold anything.

use serde_json::Value;

use crate::origin::{Positions, child, position_of};
use crate::redact::is_secret;
use crate::{ConfigError, ConfigProblem};

/// What a value may be.
enum Kind {
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// `false` and nothing else.
    False,
    /// Any number.
    Number,
    /// A whole number, not below this.
    Whole(u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// A list of exactly two, of these kinds.
    Pair(&'static Kind, &'static Kind),
    /// An object whose members are all of this kind.
    Map(&'static Kind),
    /// An object with these members, and any others.
    Members(&'static [(&'static str, Kind)]),
    /// As `Members`, and this one must be there.
    Needs(&'static str, &'static [(&'static str, Kind)]),
    /// An object, whatever is in it.
    AnyObject,
    /// Any of these, and how to say so.
    Either(&'static [Kind], &'static str),
}

use Kind::{
    AnyObject, Bool, Either, False, List, Map, Members, Needs, Number, Pair, Text, Whole, Word,
};

const TEXTS: Kind = List(&Text);
const ACTION: Kind = Word(&["allow", "ask", "deny"]);
const RULE: Kind = Either(
    &[ACTION, Map(&ACTION)],
    "\"allow\", \"ask\" or \"deny\", or an object of patterns with one of these each",
);
const PERMISSION: Kind = Either(
    &[ACTION, Map(&RULE)],
    "\"allow\", \"ask\" or \"deny\", or an object of permissions with their rules",
);
const MILLIS_OR_FALSE: Kind = Either(
    &[Whole(1), False],
    "milliseconds as a whole number, or false",
);

const AGENT: Kind = Members(&[
    ("model", Text),
    ("variant", Text),
    ("temperature", Number),
    ("top_p", Number),
    ("prompt", Text),
    ("tools", Map(&Bool)),
    ("disable", Bool),
    ("description", Text),
    ("mode", Word(&["subagent", "primary", "all"])),
    ("hidden", Bool),
    ("options", AnyObject),
    ("color", Text),
    ("steps", Whole(1)),
    ("maxSteps", Whole(1)),
    ("permission", PERMISSION),
    ("order", Number),
]);

const COMMAND: Kind = Needs(
    "template",
    &[
        ("template", Text),
        ("description", Text),
        ("agent", Text),
        ("model", Text),
        ("variant", Text),
        ("subtask", Bool),
    ],
);

const MODEL: Kind = Members(&[
    ("id", Text),
    ("name", Text),
    ("family", Text),
    ("release_date", Text),
    ("attachment", Bool),
    ("reasoning", Bool),
    ("temperature", Bool),
    ("tool_call", Bool),
    (
        "cost",
        Members(&[
            ("input", Number),
            ("output", Number),
            ("cache_read", Number),
            ("cache_write", Number),
        ]),
    ),
    (
        "limit",
        Members(&[("context", Number), ("input", Number), ("output", Number)]),
    ),
    (
        "modalities",
        Members(&[("input", TEXTS), ("output", TEXTS)]),
    ),
    ("options", AnyObject),
    ("headers", Map(&Text)),
    ("variants", Map(&AnyObject)),
]);

const PROVIDER: Kind = Members(&[
    ("api", Text),
    ("name", Text),
    ("env", TEXTS),
    ("id", Text),
    ("npm", Text),
    ("whitelist", TEXTS),
    ("blacklist", TEXTS),
    (
        "options",
        Members(&[
            ("apiKey", Text),
            ("baseURL", Text),
            ("setCacheKey", Bool),
            ("timeout", MILLIS_OR_FALSE),
            ("headerTimeout", MILLIS_OR_FALSE),
            ("chunkTimeout", MILLIS_OR_FALSE),
        ]),
    ),
    ("models", Map(&MODEL)),
]);

const MCP: Kind = Members(&[
    ("type", Word(&["local", "remote"])),
    ("command", TEXTS),
    ("cwd", Text),
    ("environment", Map(&Text)),
    ("url", Text),
    ("headers", Map(&Text)),
    ("enabled", Bool),
    ("timeout", Whole(1)),
]);

const PLUGIN: Kind = Either(
    &[Text, Pair(&Text, &AnyObject)],
    "a plugin as text, or a list of the plugin and its options",
);

const CONFIG: Kind = Members(&[
    ("$schema", Text),
    ("shell", Text),
    ("logLevel", Text),
    ("command", Map(&COMMAND)),
    ("skills", Members(&[("paths", TEXTS), ("urls", TEXTS)])),
    ("watcher", Members(&[("ignore", TEXTS)])),
    ("snapshot", Bool),
    ("plugin", List(&PLUGIN)),
    ("share", Word(&["manual", "auto", "disabled"])),
    ("autoshare", Bool),
    (
        "autoupdate",
        Either(&[Bool, Word(&["notify"])], "true, false or \"notify\""),
    ),
    ("disabled_providers", TEXTS),
    ("enabled_providers", TEXTS),
    ("model", Text),
    ("small_model", Text),
    ("default_agent", Text),
    ("subagent_depth", Whole(0)),
    ("username", Text),
    ("mode", Map(&AGENT)),
    ("agent", Map(&AGENT)),
    ("provider", Map(&PROVIDER)),
    ("mcp", Map(&MCP)),
    (
        "formatter",
        Either(&[Bool, AnyObject], "true, false or an object of formatters"),
    ),
    (
        "lsp",
        Either(
            &[Bool, AnyObject],
            "true, false or an object of language servers",
        ),
    ),
    ("instructions", TEXTS),
    ("permission", PERMISSION),
    ("tools", Map(&Bool)),
    (
        "tool_output",
        Members(&[("max_lines", Whole(1)), ("max_bytes", Whole(1))]),
    ),
    (
        "compaction",
        Members(&[
            ("auto", Bool),
            ("prune", Bool),
            ("tail_turns", Whole(0)),
            ("preserve_recent_tokens", Whole(0)),
            ("reserved", Whole(0)),
        ]),
    ),
    (
        "experimental",
        Members(&[
            ("primary_tools", TEXTS),
            ("continue_loop_on_deny", Bool),
            ("mcp_timeout", Whole(1)),
            ("batch_tool", Bool),
            ("openTelemetry", Bool),
        ]),
    ),
]);

/// A value that is not what it should be.
#[derive(Debug)]
pub(crate) struct Mismatch {
    /// Where.
    pub(crate) pointer: String,
    /// What belongs there.
    pub(crate) expected: String,
    /// What is there.
    pub(crate) found: String,
}

impl Mismatch {
    /// As an error of the file.
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

    /// As a problem: the value is left out.
    pub(crate) fn problem(self, file: &str) -> ConfigProblem {
        ConfigProblem {
            file: file.into(),
            message: format!("expected {}, found {}; left out", self.expected, self.found),
            pointer: Some(self.pointer),
        }
    }
}

/// Everything in the document that has the wrong type, in the document's order.
pub(crate) fn document(value: &Value) -> Vec<Mismatch> {
    let mut wrong = Vec::new();
    walk(&CONFIG, value, "", &mut wrong);
    wrong
}

fn walk(kind: &Kind, value: &Value, pointer: &str, wrong: &mut Vec<Mismatch>) {
    let mismatch = |found: &Value| Mismatch {
        pointer: pointer.into(),
        expected: expected(kind),
        // A slip near a key or token must not print it.
        found: if is_secret(&format!("{pointer}/")) || is_secret(pointer) {
            kind_of(found).into()
        } else {
            describe(found)
        },
    };
    match (kind, value) {
        (Map(member), Value::Object(map)) => {
            for (key, value) in map {
                walk(member, value, &child(pointer, key), wrong);
            }
        }
        (Members(members) | Needs(_, members), Value::Object(map)) => {
            if let Needs(name, _) = kind
                && !map.contains_key(*name)
            {
                wrong.push(Mismatch {
                    pointer: pointer.into(),
                    expected: format!("an object with `{name}`"),
                    found: format!("one without `{name}`"),
                });
            }
            for (key, value) in map {
                if let Some((_, member)) = members.iter().find(|(name, _)| name == key) {
                    walk(member, value, &child(pointer, key), wrong);
                }
            }
        }
        (List(item), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                walk(item, value, &format!("{pointer}/{index}"), wrong);
            }
        }
        (Pair(first, second), Value::Array(items)) if items.len() == 2 => {
            for (index, (kind, value)) in [first, second].into_iter().zip(items).enumerate() {
                walk(kind, value, &format!("{pointer}/{index}"), wrong);
            }
        }
        (Either(kinds, _), _) => match kinds.iter().find(|kind| same_shape(kind, value)) {
            // A word of the wrong spelling is best told with everything that would do.
            Some(kind) if value.is_object() || value.is_array() => {
                walk(kind, value, pointer, wrong)
            }
            Some(kind) if fits(kind, value) => {}
            _ => wrong.push(mismatch(value)),
        },
        _ if fits(kind, value) => {}
        _ => wrong.push(mismatch(value)),
    }
}

/// Whether the JSON type is right, so that going inside gives the better message.
fn same_shape(kind: &Kind, value: &Value) -> bool {
    match kind {
        Map(_) | Members(_) | Needs(..) | AnyObject => value.is_object(),
        List(_) => value.is_array(),
        Pair(..) => value.as_array().is_some_and(|items| items.len() == 2),
        _ => fits(kind, value),
    }
}

fn fits(kind: &Kind, value: &Value) -> bool {
    match kind {
        Text => value.is_string(),
        Bool => value.is_boolean(),
        False => value == &Value::Bool(false),
        Number => value.is_number(),
        Whole(least) => whole(value).is_some_and(|number| number >= *least),
        Word(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        AnyObject => value.is_object(),
        _ => false,
    }
}

/// A whole number, also when it is written as `4.0`, which JavaScript does not tell apart.
pub(crate) fn whole(value: &Value) -> Option<u64> {
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

fn expected(kind: &Kind) -> String {
    match kind {
        Text => "text".into(),
        Bool => "true or false".into(),
        False => "false".into(),
        Number => "a number".into(),
        Whole(0) => "a whole number".into(),
        Whole(least) => format!("a whole number from {least}"),
        Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            match words.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => words.join(""),
            }
        }
        List(Text) => "a list of texts".into(),
        List(_) => "a list".into(),
        Pair(..) => "a list of two".into(),
        Map(_) | Members(_) | Needs(..) | AnyObject => "an object".into(),
        Either(_, words) => (*words).into(),
    }
}

/// What a value is, in few words and without printing a long one.
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

/// What a value is, without a word of what it says.
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
