//! Changes of a plugin since it was trusted.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::content::{Before, Content};
use crate::store::{Store, text_of};

/// Maximum number of named files; the rest is counted.
const MAX_NAMED: usize = 1000;
/// Maximum length of a stored diff, in lines, of all files together. The caller decides how much of it is displayed at
/// once.
const MAX_LINES: usize = 20_000;

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Path relative to the plugin's folder.
    pub name: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// Bytes before; `None` for an added file.
    pub before: Option<u64>,
    /// Bytes now; `None` for a removed file.
    pub after: Option<u64>,
    /// Unified diff of a text, with whole lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Changes of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The files, own ones first; truncated if there are many.
    pub files: Vec<FileChange>,
    /// Number of further files.
    pub more: usize,
}

impl Changes {
    pub(crate) fn between(before: &Before, content: &Content, store: &Store) -> Self {
        let names: BTreeSet<&String> = before.files.keys().chain(content.files.keys()).collect();
        let mut files: Vec<(bool, FileChange)> = Vec::new();
        for name in names {
            let (old, new) = (before.files.get(name), content.files.get(name));
            let change = match (old, new) {
                (None, Some(_)) => "added",
                (Some(_), None) => "removed",
                (Some(old), Some(new))
                    if (&old.hash, old.exec, &old.kind) != (&new.hash, new.exec, &new.kind) =>
                {
                    "changed"
                }
                _ => continue,
            };
            let own = old.or(new).is_some_and(|file| file.own);
            let change = FileChange {
                name: name.clone(),
                change,
                before: old.map(|file| file.size),
                after: new.map(|file| file.size),
                diff: None,
            };
            files.push((!own, change));
        }
        files.sort_by_key(|(foreign, _)| *foreign);
        let more = files.len().saturating_sub(MAX_NAMED);
        files.truncate(MAX_NAMED);
        let mut left = MAX_LINES;
        let files = files.into_iter().map(|(foreign, mut change)| {
            if !foreign {
                let text = |side: Option<String>, there: bool| match (side, there) {
                    (Some(text), _) => Some(text),
                    (None, there) => (!there).then(String::new),
                };
                let old = before.files.get(&change.name);
                let old = text(old.and_then(|file| store.text(&file.hash)), old.is_some());
                let new = content.places.get(&change.name);
                let new = text(new.and_then(|path| text_of(path)), new.is_some());
                if let (Some(old), Some(new)) = (old, new) {
                    change.diff = diff(&old, &new, &mut left);
                }
            }
            change
        });
        Self {
            files: files.collect(),
            more,
        }
    }

    /// Returns lines for display, safe for a terminal. A line may be long, and there may be many.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let size = match (file.before, file.after) {
                (Some(before), Some(after)) => format!("{before} -> {after} bytes"),
                (Some(size), None) | (None, Some(size)) => format!("{size} bytes"),
                (None, None) => String::new(),
            };
            text.push_str(&format!(
                "  {:<8} {}  {size}\n",
                file.change,
                plain(&file.name)
            ));
            for line in file.diff.iter().flat_map(|diff| diff.lines()) {
                text.push_str(&format!("    {}\n", plain(line)));
            }
        }
        if self.more > 0 {
            text.push_str(&format!("  and {} files more\n", self.more));
        }
        text
    }
}

fn diff(old: &str, new: &str, left: &mut usize) -> Option<String> {
    if *left == 0 || old == new {
        return None;
    }
    let diff = similar::TextDiff::from_lines(old, new);
    let whole = diff.unified_diff().context_radius(2).to_string();
    let count = whole.lines().count();
    let mut lines: Vec<&str> = whole.lines().take(*left).collect();
    let more = format!("... and {} lines more", count.saturating_sub(*left));
    if count > lines.len() {
        lines.push(&more);
    }
    *left = left.saturating_sub(count);
    Some(lines.join("\n"))
}

/// Returns untrusted text without control and invisible characters.
pub(crate) fn plain(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control() && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .flat_map(|c| {
            if hidden(c) {
                c.escape_unicode().collect::<Vec<char>>()
            } else {
                vec![c]
            }
        })
        .collect()
}
