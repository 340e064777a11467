//! Markdown files with YAML between `---` lines at their top.

use outrigger_schema::child;
use serde_json::{Map, Value};

use crate::origin::{Position, Positions};

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// Values of the YAML.
    pub(crate) data: Map<String, Value>,
    /// Positions of its top-level keys, by `/key`.
    pub(crate) positions: Positions,
    /// The text below, unchanged.
    pub(crate) body: String,
}

/// Reads a file. One without a first line `---` is all body.
///
/// YAML that is wrong only because a value is not quoted (`description: Use when: always`) is taken at its word, as in
/// OpenCode, since many published agents have it.
///
/// # Errors
/// What is wrong with the YAML, in words, with its line in the file.
pub(crate) fn parse(text: &str) -> Result<Markdown, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(Markdown {
            body: text.into(),
            ..Markdown::default()
        });
    };
    let mut end = first.len();
    let start = end;
    for line in lines {
        if line.trim_end() == "---" {
            let yaml = text.get(start..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok(Markdown {
                data: front(yaml)?,
                positions: keys(yaml),
                body: body.into(),
            });
        }
        end += line.len();
    }
    Err("the `---` of line 1 is not closed by a second `---` line".into())
}

/// Maximum nesting of values. The YAML parser's time is quadratic in it, and the project controls the content.
const MAX_DEPTH: usize = 64;

/// Maximum number of brackets that open, and of bytes. A closing bracket in a quoted text closes nothing, and which text is
/// quoted only the parser knows; so the depth is at most the number of those that open.
const MAX_BRACKETS: usize = 1000;
const MAX_YAML: usize = 64 << 10;

/// Returns whether brackets, or steps of indentation, exceed the maximum nesting.
fn is_too_deep(yaml: &str) -> bool {
    let mut open = 0_usize;
    let brackets = yaml.chars().any(|c| {
        match c {
            '[' | '{' => open += 1,
            ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > MAX_DEPTH
    });
    let mut indents: Vec<usize> = Vec::new();
    let steps = yaml
        .lines()
        .filter(|line| !line.trim().is_empty())
        .any(|line| {
            let text = line.trim_start_matches([' ', '-', '?']);
            let indent = line.len() - text.len();
            indents.retain(|it| *it < indent);
            indents.push(indent);
            // `- - - -` nests in one line.
            let dashes = line
                .trim_start()
                .chars()
                .take_while(|c| matches!(c, ' ' | '-' | '?'));
            indents.len() + dashes.filter(|c| *c != ' ').count() > MAX_DEPTH
        });
    brackets || steps
}

fn front(yaml: &str) -> Result<Map<String, Value>, String> {
    if yaml.len() > MAX_YAML {
        return Err(format!(
            "the values between the `---` lines are larger than {} KiB; put the text below them",
            MAX_YAML >> 10
        ));
    }
    if yaml.matches(['[', '{']).count() > MAX_BRACKETS {
        return Err(format!(
            "the values between the `---` lines have more than {MAX_BRACKETS} opening brackets; write lists with `- `"
        ));
    }
    if is_too_deep(yaml) {
        return Err(format!(
            "the values between the `---` lines are nested more than {MAX_DEPTH} deep"
        ));
    }
    // With an empty line in place of the first `---`, the line numbers of errors are those of the file.
    let read = |yaml: &str| serde_yaml_ng::from_str::<Value>(&format!("\n{yaml}"));
    let parsed = read(yaml).or_else(|error| read(&quote_plain_values(yaml)).map_err(|_| error));
    match parsed {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the text between the `---` lines is not a list of keys and values".into()),
        Err(error) => Err(format!("not valid YAML between the `---` lines: {error}")),
    }
}

/// Quotes the values of top-level keys that are neither quoted, nor a block, nor a list or object, nor followed by
/// indented lines.
fn quote_plain_values(yaml: &str) -> String {
    let lines: Vec<&str> = yaml.lines().collect();
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        let continued = lines
            .get(index + 1)
            .is_some_and(|next| next.starts_with([' ', '\t']));
        match key_of(line) {
            Some((key, value))
                if !continued
                    && value.contains(':')
                    && !value.starts_with(['"', '\'', '|', '>', '[', '{', '#']) =>
            {
                out.push_str(&format!("{key}: {}\n", Value::from(value)));
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// Returns the key and the value of a line that starts with a key.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (!key.is_empty() && key.chars().all(plain)).then(|| (key, value.trim()))
}

fn keys(yaml: &str) -> Positions {
    let mut positions = Positions::new();
    for (line, text) in (2..).zip(yaml.lines()) {
        if let Some((key, _)) = key_of(text) {
            positions.insert(child("", key), Position { line, column: 1 });
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_nested_too_deep_is_not_parsed() {
        let deep = |unit: &str| unit.repeat(MAX_BRACKETS);
        let mut steps = String::new();
        for n in 0..100 {
            steps += &format!("{}a:\n", " ".repeat(n));
        }
        for yaml in [
            format!("description: {}", deep("[")),
            format!("mcp: {}", deep("{a: ")),
            format!("a:\n  {}", deep("- ")),
            steps,
        ] {
            let error = front(&yaml).unwrap_err();
            assert!(error.contains("more than 64 deep"), "{error}");
        }
        let usual =
            "a: [1, [2]]\nb:\n  c:\n    - d: {e: 1}\n    - f\ntext: '---------- [x] ----------'\n";
        assert!(front(usual).is_ok());
        let long: String = (0..500)
            .map(|n| format!("k{n}: [{n}, {{a: {n}}}]\n"))
            .collect();
        assert!(front(&long).is_ok());
    }

    /// The scanner of the YAML parser takes time quadratic in open brackets; quoted ones close none.
    #[test]
    fn brackets_in_quotes_hide_no_depth() {
        for (yaml, want) in [
            (
                format!("z: {}0", "[\"]\",".repeat(5000)),
                "more than 1000 opening brackets",
            ),
            (
                format!("z: {}0", "{'}': ".repeat(5000)),
                "more than 1000 opening brackets",
            ),
            (format!("z: {}", "x".repeat(MAX_YAML)), "larger than 64 KiB"),
        ] {
            let error = parse(&format!("---\n{yaml}\n---\n")).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn reads() {
        for (text, data, body) in [
            ("just text\n---\n", json!({}), "just text\n---\n"),
            ("---\na: 1\n---\nbody\n", json!({"a": 1}), "body\n"),
            (
                "---\r\na: x\r\n---\r\nbody\r\n",
                json!({"a": "x"}),
                "body\r\n",
            ),
            ("\u{feff}---\n---\nbody", json!({}), "body"),
            ("---\n# only a comment\n---\n", json!({}), ""),
            (
                "---\ndescription: Use when: always\nmode: subagent\n---\nb",
                json!({"description": "Use when: always", "mode": "subagent"}),
                "b",
            ),
            (
                "---\na: b: c\nt:\n  bash: false\nd: |\n  x: y\n---\n",
                json!({"a": "b: c", "t": {"bash": false}, "d": "x: y\n"}),
                "",
            ),
            (
                "---\na: 1\n---\nx\n---\ny\n",
                json!({"a": 1}),
                "x\n---\ny\n",
            ),
            ("---- not\n", json!({}), "---- not\n"),
        ] {
            let markdown = parse(text).unwrap();
            assert_eq!(
                (Value::Object(markdown.data), markdown.body.as_str()),
                (data, body),
                "{text:?}"
            );
        }
        assert_eq!(
            parse("---\na: 1\nb: 2\n---\n").unwrap().positions["/b"],
            Position { line: 3, column: 1 }
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let seen: Vec<String> = ["---\na: 1\n", "---\n- a\n---\n", "---\nok: 1\na: [1\n---\n"]
            .map(|text| parse(text).unwrap_err())
            .into();
        insta::assert_snapshot!(seen.join("\n"), @"
        the `---` of line 1 is not closed by a second `---` line
        the text between the `---` lines is not a list of keys and values
        not valid YAML between the `---` lines: did not find expected ',' or ']' at line 4 column 1, while parsing a flow sequence at line 3 column 4
        ");
    }
}
