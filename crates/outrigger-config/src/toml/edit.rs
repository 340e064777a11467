//! Setting one value of an `outrigger.toml`, preserving comments, order and layout.
//!
//! This module computes texts. The caller reads and writes files.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::ConfigError;
use crate::origin::Position;

/// The text with the value at `path` set to `value`, which is TOML: in its place where there is one, else in its table, else in a
/// new table at the end.
///
/// # Errors
/// `config.syntax` for a text that is not TOML, and for one in which the place cannot be found (its table is written inline, say):
/// then a person has to write it.
pub fn set_in_toml(
    text: &str,
    file: &str,
    path: &[&str],
    value: &str,
) -> Result<String, ConfigError> {
    let wrong = |at: usize, message: String, hint: &str| {
        let at = Position::at(text, at);
        ConfigError::Syntax {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            language: "TOML",
            message,
            hint: hint.to_owned(),
        }
    };
    let document = DeTable::parse(text).map_err(|error| {
        wrong(
            error.span().map_or(0, |span| span.start),
            error.message().to_owned(),
            "the file has to be mended before it can be changed",
        )
    })?;
    let Some((key, table)) = path.split_last() else {
        return Ok(text.to_owned());
    };
    let line = format!("{} = {value}\n", bare(key));
    let new = match span(document.get_ref(), path) {
        Some(span) => {
            let mut new = text.to_owned();
            new.replace_range(span, value);
            new
        }
        None => with_line(text, table, &line),
    };
    let is_written = DeTable::parse(&new)
        .ok()
        .and_then(|document| span(document.get_ref(), path))
        .and_then(|span| new.get(span))
        .is_some_and(|there| there == value);
    if is_written {
        Ok(new)
    } else {
        Err(wrong(
            0,
            format!("it cannot be seen where {} belongs", path.join(".")),
            &format!(
                "write `{}` into the table `{}` yourself",
                line.trim_end(),
                table.join(".")
            ),
        ))
    }
}

/// Returns the text with an additional line in a table, which is appended if it does not exist.
fn with_line(text: &str, table: &[&str], line: &str) -> String {
    let mut new = text.to_owned();
    if let Some(at) = behind_header(text, table) {
        if !new.get(..at).unwrap_or_default().ends_with('\n') {
            new.insert(at, '\n');
            new.insert_str(at + 1, line);
        } else {
            new.insert_str(at, line);
        }
        return new;
    }
    if !new.is_empty() && !new.ends_with('\n') {
        new.push('\n');
    }
    if !new.is_empty() {
        new.push('\n');
    }
    let header: Vec<String> = table.iter().map(|part| bare(part)).collect();
    new.push_str(&format!("[{}]\n{line}", header.join(".")));
    new
}

/// Returns the position of a value.
fn span(document: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (_, value) = document.iter().find(|(name, _)| name.get_ref() == first)?;
    match (rest, value.get_ref()) {
        ([], _) => Some(value.span()),
        (rest, DeValue::Table(inner)) => span(inner, rest),
        _ => None,
    }
}

/// Returns the position after the line that opens a table.
fn behind_header(text: &str, table: &[&str]) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let header = line.trim_start();
        if !header.starts_with('[') || header.starts_with("[[") {
            continue;
        }
        // A line of an array's value may look like a header; it opens no such table then, and the result is parsed again.
        let opens = DeTable::parse(line)
            .ok()
            .and_then(|alone| span(alone.get_ref(), table));
        if opens.is_some() && depth(line) == table.len() {
            return Some(at);
        }
    }
    None
}

/// Returns the number of names in a header.
fn depth(line: &str) -> usize {
    let mut depth = 0;
    let Ok(document) = DeTable::parse(line) else {
        return 0;
    };
    let mut table = document.get_ref();
    while let Some((_, value)) = table.iter().next() {
        depth += 1;
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    depth
}

/// Returns a key, in quotes if necessary.
fn bare(key: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(fits) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Returns a text as a TOML string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;
    use proptest::prelude::*;

    #[test]
    fn everything_else_stays() {
        let enabled = &["plugins", "@acme/x", "enabled"][..];
        for (text, path, want) in [
            ("", enabled, "[plugins.\"@acme/x\"]\nenabled = true\n"),
            (
                "# mine\nsandbox = \"on\"",
                enabled,
                "# mine\nsandbox = \"on\"\n\n[plugins.\"@acme/x\"]\nenabled = true\n",
            ),
            (
                "[plugins.'@acme/x'] # theirs\npriority = 1\n[js]\nruntime = \"bun\"\n",
                enabled,
                "[plugins.'@acme/x'] # theirs\nenabled = true\npriority = 1\n[js]\nruntime = \"bun\"\n",
            ),
            (
                "[plugins.\"@acme/x\"]\nenabled = false # for now\n",
                enabled,
                "[plugins.\"@acme/x\"]\nenabled = true # for now\n",
            ),
            (
                "[plugins.\"@acme/x\"]",
                enabled,
                "[plugins.\"@acme/x\"]\nenabled = true\n",
            ),
            (
                "plugins = { \"@acme/x\" = { enabled = false } }\n",
                enabled,
                "plugins = { \"@acme/x\" = { enabled = true } }\n",
            ),
            (
                "[discovery]\npaths = [\n  \"a\", # b\n]\n",
                &["discovery", "paths"],
                "[discovery]\npaths = true\n",
            ),
        ] {
            assert_eq!(
                set_in_toml(text, "f", path, "true").unwrap(),
                want,
                "{text}"
            );
        }
        let inline = "plugins = { other = { enabled = false } }\n";
        let error = set_in_toml(inline, "f", enabled, "true").unwrap_err();
        assert!(error.hint().unwrap().contains("enabled = true"), "{error}");
        assert!(set_in_toml("[", "f", enabled, "true").is_err());
    }

    proptest! {
        #[test]
        fn what_was_set_is_read(id in "[ -~]{1,12}", before in "[a-z]{0,5}") {
            let text = format!("x = {}\n", quoted(&before));
            let path = ["plugins", id.as_str(), "enabled"];
            let once = set_in_toml(&text, "f", &path, "true").unwrap();
            let twice = set_in_toml(&once, "f", &path, "false").unwrap();
            prop_assert!(twice.starts_with(&text));
            let value: toml::Value = toml::from_str(&twice).unwrap();
            prop_assert_eq!(value["plugins"][&id]["enabled"].as_bool(), Some(false));
        }
    }
}
