//! The one question about a folder: what its files ask for, in numbered sections, and what is new or changed in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use outrigger_config::{Asked, IS_RUN, unknown};

/// Names that a section shows; the rest is counted.
const MAX_NAMED: usize = 6;

/// What a person is asked about a folder, safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderQuestion {
    /// What is asked for, a numbered line for each kind.
    pub summary: String,
    /// Each thing that is asked for, as it is written.
    pub details: String,
}

impl FolderQuestion {
    /// `known` is what was asked for when the folder was trusted; `made` names settings that changed while something in a
    /// sandbox ran.
    pub(super) fn of(
        asks: &[Asked],
        known: Option<&[Asked]>,
        made: Vec<String>,
        directory: &Path,
    ) -> Self {
        let new = known.map_or_else(|| asks.iter().collect(), |known| unknown(asks, known));
        let head = match (known, new.is_empty()) {
            (_, true) => "The settings of this folder were changed by what ran in it",
            (None, false) => "The settings of this folder need your trust",
            (Some(_), false) => "The settings of this folder changed since you trusted it",
        };
        let mut sections: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut details = String::new();
        for ask in new {
            let is_changed = known.is_some_and(|known| {
                let mut same = known
                    .iter()
                    .filter(|it| it.file == ask.file && it.what == ask.what);
                // Entries of a list have one place, so that only a single one can change.
                same.next().is_some() && !LISTS.contains(&ask.what.as_str())
            });
            let mark = match (known, is_changed) {
                (None, _) => "",
                (Some(_), true) => "changed: ",
                (Some(_), false) => "new: ",
            };
            let _ = writeln!(details, "  {mark}{}", plain(&line(ask, directory)));
            let name = format!("{mark}{}", plain(&name(ask, directory)));
            sections.entry(section(&ask.what)).or_default().push(name);
        }
        if !made.is_empty() {
            for file in &made {
                let _ = writeln!(details, "  {}", plain(file));
            }
            let made = made.iter().map(|it| plain(it)).collect();
            sections.insert(SECTIONS.len(), made);
        }
        let mut summary = format!("{head}:\n");
        for (number, (section, names)) in sections.iter().enumerate() {
            let title = SECTIONS.get(*section).map_or(MADE, |(title, _)| title);
            let more = names.len().saturating_sub(MAX_NAMED);
            let shown: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let (number, count, shown) = (number + 1, names.len(), shown.join(", "));
            let _ = writeln!(summary, "  {number}. {title} ({count}): {shown}{more}");
        }
        Self { summary, details }
    }
}

/// Settings that are lists, whose entries have no place of their own.
const LISTS: [&str; 4] = ["/plugin", "/instructions", "plugin", "tool"];

/// What is shown together, and which keys it has.
const SECTIONS: [(&str, &[&str]); 9] = [
    ("plugins and tools", &["plugin", "tool"]),
    ("MCP servers", &["mcp", "mcpServers"]),
    ("command hooks", &["hooks"]),
    ("commands that run something", &["command"]),
    ("programs", &["lsp", "formatter", "shell"]),
    ("providers of models", &["provider"]),
    (
        "rules that allow, agents with rights",
        &["permission", "tools", "agent", "mode"],
    ),
    ("files that these run", &[IS_RUN]),
    ("other settings", &[]),
];
const MADE: &str = "settings changed while Outrigger ran";

fn section(what: &str) -> usize {
    let key = what
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let found = SECTIONS.iter().position(|(_, keys)| keys.contains(&key));
    found.unwrap_or(SECTIONS.len() - 1)
}

/// In few words: the last part of where it stands, and the file.
fn name(ask: &Asked, directory: &Path) -> String {
    let file = relative(&ask.file, directory);
    match ask.what.as_str() {
        IS_RUN => file,
        what if what.trim_start_matches('/').starts_with("command") && file.ends_with(".md") => {
            file
        }
        what if LISTS.contains(&what) => {
            let value = ask.shown.trim_matches('"');
            let value = value.strip_prefix("file://").unwrap_or(value);
            relative(value, directory)
        }
        what => {
            let key = what.trim_start_matches('/');
            let key = key.split_once('/').map_or(key, |(_, rest)| rest);
            format!("{key} ({file})")
        }
    }
}

fn line(ask: &Asked, directory: &Path) -> String {
    format!(
        "{} {}: {}",
        relative(&ask.file, directory),
        ask.what,
        ask.shown
    )
}

fn relative(file: &str, directory: &Path) -> String {
    let path = Path::new(file);
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    let within = path
        .strip_prefix(directory)
        .or_else(|_| path.strip_prefix(real));
    within.unwrap_or(path).display().to_string()
}

/// What is asked for, in lines that are safe to print.
pub(super) fn listed<'a>(asks: impl Iterator<Item = &'a Asked>, directory: &Path) -> String {
    let mut text = String::new();
    for ask in asks {
        let _ = writeln!(text, "  {}", plain(&line(ask, directory)));
    }
    text
}

fn plain(text: &str) -> String {
    let safe = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '\u{fffd}' });
    safe.collect()
}

/// Whether a terminal shows the character and does nothing else.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
