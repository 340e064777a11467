//! Origins of values, and JSON pointers (RFC 6901).

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Origin {
    /// A file.
    File {
        /// Absolute path.
        path: PathBuf,
        /// Line, from 1; 0 if unknown.
        line: u32,
        /// Column in characters, from 1; 0 if unknown.
        column: u32,
    },
    /// An environment variable.
    Env {
        /// Its name.
        name: String,
    },
    /// The default.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0, .. } => write!(f, "{}", path.display()),
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Env { name } => write!(f, "environment {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Line and column, both from 1, the column in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Line.
    pub(crate) line: u32,
    /// Column.
    pub(crate) column: u32,
}

impl Position {
    /// Returns the position of a byte offset. An offset beyond the end is the end.
    pub(crate) fn at(text: &str, offset: usize) -> Self {
        Lines::of(text).at(offset)
    }
}

/// Finds many positions in one text, each in a constant time: files of strangers have many values, also on one line.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Where lines start.
    starts: Vec<usize>,
    /// The number of characters before each block of the text.
    blocks: Vec<usize>,
}

const BLOCK: usize = 1024;

impl<'a> Lines<'a> {
    /// Reads a text once.
    pub(crate) fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        let mut count = 0;
        let blocks = text.as_bytes().chunks(BLOCK).map(|block| {
            let before = count;
            count += characters(block);
            before
        });
        Self {
            text,
            starts: starts.collect(),
            blocks: blocks.collect(),
        }
    }

    /// Returns the position of a byte offset. An offset beyond the end is the end.
    pub(crate) fn at(&self, offset: usize) -> Position {
        let within = self.text.is_char_boundary(offset);
        let offset = if within { offset } else { self.text.len() };
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied();
        let column = self.before(offset) - self.before(start.unwrap_or_default()) + 1;
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    /// Returns the number of characters before an offset.
    fn before(&self, offset: usize) -> usize {
        let block = (offset / BLOCK).min(self.blocks.len().saturating_sub(1));
        let rest = self.text.as_bytes().get(block * BLOCK..offset);
        self.blocks.get(block).copied().unwrap_or_default() + rest.map_or(0, characters)
    }
}

/// Counts the characters that start in a part of a text.
fn characters(part: &[u8]) -> usize {
    part.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Positions of values by JSON pointer.
pub(crate) type Positions = BTreeMap<String, Position>;

/// Returns the position of a value or, for a derived one, of the nearest enclosing value.
pub(crate) fn position_of(positions: &Positions, pointer: &str) -> Position {
    let mut at = pointer;
    loop {
        if let Some(position) = positions.get(at) {
            return *position;
        }
        match at.rfind('/') {
            Some(slash) => at = at.get(..slash).unwrap_or_default(),
            None => return Position::default(),
        }
    }
}

/// Returns the origin of a value or, if it has none of its own, of the nearest enclosing value; for a whole object, that
/// of any value in it.
pub(crate) fn nearest(origins: &BTreeMap<String, Origin>, pointer: &str) -> Origin {
    let mut at = pointer;
    loop {
        if let Some(origin) = origins.get(at) {
            return origin.clone();
        }
        match at.rfind('/') {
            Some(slash) => at = at.get(..slash).unwrap_or_default(),
            None => break,
        }
    }
    let inside = format!("{pointer}/");
    origins
        .range(inside.clone()..)
        .next()
        .filter(|(key, _)| key.starts_with(&inside))
        .map_or(Origin::Default, |(_, origin)| origin.clone())
}

/// Returns the last key of a pointer, unescaped.
pub(crate) fn last_key(pointer: &str) -> String {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    key.replace("~1", "/").replace("~0", "~")
}

/// Removes a value, if it exists.
pub(crate) fn remove(value: &mut serde_json::Value, pointer: &str) {
    let Some((parent, _)) = pointer.rsplit_once('/') else {
        return;
    };
    let key = last_key(pointer);
    match value.pointer_mut(parent) {
        Some(serde_json::Value::Object(map)) => {
            map.shift_remove(&key);
        }
        Some(serde_json::Value::Array(items)) => {
            if let Ok(index) = key.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_schema::child;
    use serde_json::json;

    #[test]
    fn positions_count_characters() {
        for (text, offset, line, column) in [
            ("abc", 0, 1, 1),
            ("abc", 2, 1, 3),
            ("a\nb", 2, 2, 1),
            ("\u{e4}x", 2, 1, 2),
            ("a\r\nb", 3, 2, 1),
            ("a", 99, 1, 2),
        ] {
            assert_eq!(
                Position::at(text, offset),
                Position { line, column },
                "{text:?} {offset}"
            );
        }
    }

    #[test]
    fn positions_are_the_same_in_a_long_line() {
        let text = format!("x\n{}\n\nz", "\u{e4}b".repeat(2000));
        let lines = Lines::of(&text);
        for (offset, _) in text.char_indices().step_by(7) {
            let before = &text[..offset];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            let found = lines.at(offset);
            assert_eq!(
                (found.line as usize, found.column as usize),
                (line, column),
                "{offset}"
            );
        }
        let empty = Position { line: 1, column: 1 };
        assert_eq!(Lines::of("").at(0), empty);
        assert_eq!(Lines::of("").at(9), empty);
    }

    #[test]
    fn pointers_escape() {
        let mut value = json!({"a/b": {"~": [1, 2]}});
        let pointer = child(&child(&child("", "a/b"), "~"), "1");
        assert_eq!(pointer, "/a~1b/~0/1");
        assert_eq!(value.pointer(&pointer), Some(&json!(2)));
        remove(&mut value, &pointer);
        assert_eq!(value, json!({"a/b": {"~": [1]}}));
        remove(&mut value, "/a~1b");
        assert_eq!(value, json!({}));
    }
}
