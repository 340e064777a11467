//! What changed in a plugin since it was trusted.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::content::{Before, Content};
use crate::store::{Store, text_of};

/// More files are counted and not named.
const MAX_NAMED: usize = 1000;
/// Longest difference that is kept, in lines, of all files together. Who shows it decides how much of it is shown at once.
const MAX_LINES: usize = 20_000;

/// One file that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Name, from the plugin's folder.
    pub name: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// Bytes before; `None` for one that was added.
    pub before: Option<u64>,
    /// Bytes now; `None` for one that was removed.
    pub after: Option<u64>,
    /// The difference of a text in the unified form; its lines are whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// The files, own ones first; not all when there are many.
    pub files: Vec<FileChange>,
    /// How many there are more.
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

    /// In lines, for a person: nothing in it can steer a terminal. A line may be long, and there may be many.
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

/// Text of another author, without what a terminal would obey or a reader could not see.
pub(crate) fn plain(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control() && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .flat_map(|c| match hidden(c) {
            true => c.escape_unicode().collect::<Vec<char>>(),
            false => vec![c],
        })
        .collect()
}
