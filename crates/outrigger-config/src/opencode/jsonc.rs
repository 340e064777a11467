//! JSON with comments and trailing commas, with the position of every value.

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use outrigger_schema::child;
use serde_json::{Map, Value};

use crate::ConfigError;
use crate::origin::{Lines, Position, Positions};

/// Maximum number of values in a file, and of bytes of the pointers to them: a project's file is read before anybody
/// trusts it.
const MAX_VALUES: usize = 50_000;
const MAX_POINTERS: usize = 16 << 20;

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Its value; an object, unless it came from [`parse`] and was not checked yet.
    pub(crate) value: Value,
    /// Position of each value.
    pub(crate) positions: Positions,
}

/// Reads a document. A file with nothing in it, or only comments, is an empty object, as in OpenCode.
///
/// # Errors
/// `config.syntax` with line and column.
pub(crate) fn parse(text: &str, file: &str) -> Result<Document, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(offset) = unclosed_string(text) {
        let at = Position::at(text, offset);
        return Err(ConfigError::Syntax {
            file: file.into(),
            line: at.line,
            column: at.column,
            language: "JSON",
            message: "this text is not closed on its line".into(),
            hint: "close the text with a double quote; write a line break in it as `\\n`".into(),
        });
    }
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| {
        let at = Position::at(text, error.range().start);
        ConfigError::Syntax {
            file: file.into(),
            line: at.line,
            column: at.column,
            language: "JSON",
            message: lower_first(&error.kind().to_string()),
            hint: hint(error.kind(), text, error.range().start),
        }
    })?;
    let mut places = Places {
        lines: Lines::of(text),
        positions: Positions::new(),
        pointers: 0,
    };
    let value = match parsed.value {
        Some(ast) => convert(&ast, String::new(), &mut places),
        None => Some(Value::Object(Map::new())),
    };
    let positions = places.positions;
    value.map(|value| Document { value, positions }).ok_or_else(|| ConfigError::Syntax {
        file: file.into(),
        line: 1,
        column: 1,
        language: "JSON",
        message: format!(
            "the file has more than {MAX_VALUES} values, or more than {} MiB of keys on the paths to them",
            MAX_POINTERS >> 20
        ),
        hint: "remove what is no setting from it".into(),
    })
}

/// Returns the start of a string that does not end on its line. The parser continues over line ends, so a missing quote
/// would be reported far below.
fn unclosed_string(text: &str) -> Option<usize> {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let offset = text.len() - rest.len() + at;
        let from = rest.get(at..)?;
        let skipped = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else if from.starts_with('"') {
            let mut escaped = false;
            let end = from.char_indices().skip(1).find(|(_, c)| {
                let ends = !escaped && matches!(c, '"') || *c == '\n';
                escaped = *c == '\\' && !escaped;
                ends
            });
            match end {
                Some((end, '"')) => end + 1,
                _ => return Some(offset),
            }
        } else {
            1
        };
        rest = from.get(skipped..)?;
    }
    None
}

/// Returns the options of OpenCode's parser: comments and trailing commas, nothing else beyond JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// What is known of the places of values.
struct Places<'a> {
    lines: Lines<'a>,
    positions: Positions,
    /// Bytes of all pointers.
    pointers: usize,
}

/// Returns the value, `None` if it exceeds a limit.
fn convert(ast: &Ast<'_>, pointer: String, places: &mut Places<'_>) -> Option<Value> {
    places.pointers += pointer.len();
    if places.positions.len() >= MAX_VALUES || places.pointers > MAX_POINTERS {
        return None;
    }
    let at = places.lines.at(start(ast));
    places.positions.insert(pointer.clone(), at);
    Some(match ast {
        Ast::StringLit(string) => Value::String(string.value.clone().into_owned()),
        // The parser checked the grammar of the number; one that serde_json cannot represent (1e999) stays a string and
        // is then reported as the wrong type.
        Ast::NumberLit(number) => number
            .value
            .parse()
            .map_or_else(|_| Value::String(number.value.into()), Value::Number),
        Ast::BooleanLit(boolean) => Value::Bool(boolean.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::Array(array) => {
            let items = array
                .elements
                .iter()
                .enumerate()
                .map(|(i, item)| convert(item, format!("{pointer}/{i}"), places));
            Value::Array(items.collect::<Option<_>>()?)
        }
        Ast::Object(object) => {
            let mut map = Map::new();
            for property in &object.properties {
                let key = property.name.as_str();
                let value = convert(&property.value, child(&pointer, key), places)?;
                map.insert(key.into(), value);
            }
            Value::Object(map)
        }
    })
}

fn start(ast: &Ast<'_>) -> usize {
    match ast {
        Ast::StringLit(node) => node.range.start,
        Ast::NumberLit(node) => node.range.start,
        Ast::BooleanLit(node) => node.range.start,
        Ast::NullKeyword(node) => node.range.start,
        Ast::Array(node) => node.range.start,
        Ast::Object(node) => node.range.start,
    }
}

fn hint(kind: &ParseErrorKind, text: &str, offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    if rest.starts_with("{env:")
        || rest.starts_with("{file:")
        || rest.starts_with("env:")
        || rest.starts_with("file:")
    {
        return "put `{env:NAME}` and `{file:PATH}` inside a string, in double quotes".into();
    }
    match kind {
        ParseErrorKind::ExpectedComma => "put a comma between this entry and the one before it",
        ParseErrorKind::ExpectedColonAfterObjectKey => "put a colon between the key and its value",
        ParseErrorKind::ExpectedObjectValue => "give the key a value",
        ParseErrorKind::UnterminatedObject => "close the object that starts here with `}`",
        ParseErrorKind::UnterminatedArray => "close the list that starts here with `]`",
        ParseErrorKind::UnterminatedCommentBlock => "close the comment with `*/`",
        ParseErrorKind::String(_) => "close the string with a double quote, and write `\\\\` for a backslash in it",
        ParseErrorKind::SingleQuotedStringsNotAllowed => "use double quotes",
        ParseErrorKind::ExpectedStringObjectProperty | ParseErrorKind::UnexpectedTokenInObject => {
            "write every key in double quotes"
        }
        ParseErrorKind::UnexpectedWord => "write text in double quotes; without quotes only true, false and null may stand",
        ParseErrorKind::MultipleRootJsonValues => "remove what follows the closing brace",
        _ => "correct the text at this place; comments and trailing commas are fine, the rest must be JSON",
    }
    .into()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + chars.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;
    use serde_json::json;

    #[test]
    fn comments_commas_and_empty_files() {
        for (text, expected) in [
            ("", json!({})),
            ("  // nothing\n", json!({})),
            ("\u{feff}{}", json!({})),
            ("{ // a\n \"a\": [1, 2,], /* b */ }", json!({"a": [1, 2]})),
            (
                r#"{"a": "http://x // not a comment"}"#,
                json!({"a": "http://x // not a comment"}),
            ),
            (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
            (
                r#"{"n": [1.5, -3, 1e3, 12345678901234567890]}"#,
                json!({"n": [1.5, -3, 1e3, 12345678901234567890_u64]}),
            ),
        ] {
            assert_eq!(parse(text, "f").unwrap().value, expected, "{text:?}");
        }
    }

    /// Without limits the first takes minutes, and the second as much memory as keys times values.
    #[test]
    fn a_file_of_a_stranger_is_bounded() {
        let list = |count: usize| format!("{{\"x\": [{}]}}", vec!["0"; count].join(","));
        assert!(parse(&list(MAX_VALUES - 2), "f").is_ok());
        let long = format!("{{\"{}\": {}}}", "k".repeat(1 << 20), list(100));
        let deep = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let same = format!("{{{}}}", vec!["\"a\": 1"; 100].join(","));
        assert!(parse(&same, "f").is_ok());
        for text in [list(2_000_000), long, deep] {
            let error = parse(&text, "opencode.json").unwrap_err();
            assert_eq!(error.code(), "config.syntax");
            assert!(error.to_string().len() < 300, "{error}");
        }
    }

    #[test]
    fn positions_of_values() {
        let document = parse("{\n  \"a\": {\"b/c\": [1,\n 2]}}", "f").unwrap();
        assert_eq!(
            document.positions["/a/b~1c/1"],
            Position { line: 3, column: 2 }
        );
        assert_eq!(
            document.positions["/a/b~1c/0"],
            Position {
                line: 2,
                column: 17
            }
        );
    }

    #[test]
    fn errors_name_the_place() {
        let mut seen = String::new();
        for text in [
            "{\n  \"model\": \"a\"\n  \"share\": \"auto\"\n}",
            "{\"a\": }",
            "{\"a\" 1}",
            "{\n \"a\": [1",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": \"x\n\"}",
            "{\"a\": yes}",
            "{} {}",
            "{\"timeout\": {env:MS}}",
            "{ /* open",
            "{\"a\": +1}",
        ] {
            let error = parse(text, "opencode.json").unwrap_err();
            assert_eq!(error.code(), "config.syntax");
            seen += &format!("{error}\n  {}\n", error.hint().unwrap());
        }
        insta::assert_snapshot!(seen, @r#"
        opencode.json:2:15: not valid JSON: expected comma
          put a comma between this entry and the one before it
        opencode.json:1:7: not valid JSON: unexpected close brace
          correct the text at this place; comments and trailing commas are fine, the rest must be JSON
        opencode.json:1:6: not valid JSON: expected colon after the string or word in object property
          put a colon between the key and its value
        opencode.json:2:7: not valid JSON: unterminated array
          close the list that starts here with `]`
        opencode.json:1:2: not valid JSON: expected string for object property
          write every key in double quotes
        opencode.json:1:2: not valid JSON: single-quoted strings are not allowed
          use double quotes
        opencode.json:1:7: not valid JSON: this text is not closed on its line
          close the text with a double quote; write a line break in it as `\n`
        opencode.json:1:7: not valid JSON: unexpected token
          correct the text at this place; comments and trailing commas are fine, the rest must be JSON
        opencode.json:1:4: not valid JSON: text cannot contain more than one JSON value
          remove what follows the closing brace
        opencode.json:1:14: not valid JSON: expected string for object property
          put `{env:NAME}` and `{file:PATH}` inside a string, in double quotes
        opencode.json:1:3: not valid JSON: unterminated comment block
          close the comment with `*/`
        opencode.json:1:7: not valid JSON: unary plus on numbers is not allowed
          correct the text at this place; comments and trailing commas are fine, the rest must be JSON
        "#);
    }
}
