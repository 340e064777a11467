//! The question about a folder: what its files request, in sections, and what is new or changed.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_config::{IS_RUN, TrustRequest, unknown};

/// A question to the user about a folder. The texts are the project's: the code that prints them must sanitise them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderQuestion {
    /// Why it is asked.
    pub head: &'static str,
    /// What needs approval, by kind: what starts something comes last, where the user looks.
    pub sections: Vec<FolderSection>,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderSection {
    /// Kind, in one word.
    pub title: &'static str,
    /// The requests.
    pub entries: Vec<FolderEntry>,
}

/// A request of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// `new`, `changed`, or empty if everything is new.
    pub mark: &'static str,
    /// Short name.
    pub name: String,
    /// File and key.
    pub place: String,
    /// The whole value as written.
    pub value: String,
}

impl FolderQuestion {
    /// Creates the question. `known` is what was requested when the folder was trusted; `made` names settings that changed while
    /// something in a sandbox ran.
    pub(super) fn of(
        asks: &[TrustRequest],
        known: Option<&[TrustRequest]>,
        made: Vec<String>,
        directory: &Path,
    ) -> Self {
        let new = known.map_or_else(|| asks.iter().collect(), |known| unknown(asks, known));
        let head = match (known, new.is_empty()) {
            (_, true) => "The settings of this folder were changed by what ran in it",
            (None, false) => "The settings of this folder need your trust",
            (Some(_), false) => "The settings of this folder changed since you trusted it",
        };
        let mut sections: BTreeMap<usize, Vec<FolderEntry>> = BTreeMap::new();
        for ask in new {
            let is_changed = known.is_some_and(|known| {
                let mut same = known
                    .iter()
                    .filter(|it| it.file == ask.file && it.what == ask.what);
                // Entries of a list share one key, so only a single one can be marked as changed.
                same.next().is_some() && !LISTS.contains(&ask.what.as_str())
            });
            let mark = match (known, is_changed) {
                (None, _) => "",
                (Some(_), true) => "changed",
                (Some(_), false) => "new",
            };
            let entry = FolderEntry {
                mark,
                name: name(ask, directory),
                place: format!("{} {}", relative(&ask.file, directory), ask.what),
                value: ask.shown.clone(),
            };
            sections.entry(section(&ask.what)).or_default().push(entry);
        }
        if !made.is_empty() {
            let entries = made.into_iter().map(|name| FolderEntry {
                mark: "",
                place: name.clone(),
                name,
                value: "changed while Outrigger ran".to_owned(),
            });
            sections.insert(SECTIONS.len(), entries.collect());
        }
        let sections = sections
            .into_iter()
            .rev()
            .map(|(section, entries)| FolderSection {
                title: SECTIONS.get(section).map_or(MADE, |(title, _)| title),
                entries,
            });
        Self {
            head,
            sections: sections.collect(),
        }
    }
}

impl FolderQuestion {
    /// Returns whether it includes plugins.
    pub(super) fn has_plugins(&self) -> bool {
        self.sections.iter().any(|it| it.title == PLUGINS)
    }

    /// Adds what a plugin may need from npm, so that it needs no separate question.
    pub(super) fn add_download(&mut self, spec: &str) {
        let name = format!("{spec} from npm (40 MB), if a plugin needs it");
        let entry = FolderEntry {
            mark: "",
            place: spec.to_owned(),
            value: name.clone(),
            name,
        };
        let section = FolderSection {
            title: DOWNLOADS,
            entries: vec![entry],
        };
        self.sections.insert(0, section);
    }
}

const PLUGINS: &str = "plugins";
/// Section of programs that are fetched for plugins.
const DOWNLOADS: &str = "downloads";

/// Settings that are lists, whose entries have no key of their own.
const LISTS: [&str; 4] = ["/plugin", "/instructions", "plugin", "tool"];

/// Sections with their keys. Settings that send or start something automatically come first here and last on the screen.
const SECTIONS: [(&str, &[&str]); 10] = [
    ("secrets", &["sends"]),
    ("servers", &["mcp", "mcpServers", "unconfined"]),
    (PLUGINS, &["plugin", "tool"]),
    ("hooks", &["hooks"]),
    ("programs", &["lsp", "formatter", "shell"]),
    ("commands", &["command"]),
    ("rules", &["permission", "tools", "agent", "mode"]),
    ("models", &["provider", "model", "small_model"]),
    ("files", &[IS_RUN]),
    ("others", &[]),
];
/// Settings that changed while Outrigger ran.
const MADE: &str = "changed";

fn section(what: &str) -> usize {
    let key = what
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let found = SECTIONS.iter().position(|(_, keys)| keys.contains(&key));
    found.unwrap_or(SECTIONS.len() - 1)
}

/// Returns a short name: the last part of the key, and the file.
fn name(ask: &TrustRequest, directory: &Path) -> String {
    let file = relative(&ask.file, directory);
    match ask.what.as_str() {
        IS_RUN => file,
        _ if ask.is_said_in_words() => ask.shown.clone(),
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

fn relative(file: &str, directory: &Path) -> String {
    let path = Path::new(file);
    let real = directory.canonicalize();
    let real = real.as_deref().unwrap_or(directory);
    let within = path
        .strip_prefix(directory)
        .or_else(|_| path.strip_prefix(real));
    within.unwrap_or(path).display().to_string()
}

/// Returns whether a character is harmless for a terminal.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
