//! Paths that words of a command may name: `cat $v` and `cat /etc/p*` read what `cat /etc/passwd` does.

use std::cell::Cell;
use std::path::{Component, Path, PathBuf};

use outrigger_shell_parse::{Command, Line, Word};

use crate::shell::command_line::{expanded, known};

/// Maximum number of variable lookups for a line, and of values of one variable.
const MAX_LOOKUPS: usize = 200;
const MAX_VALUES: usize = 60;
/// The path if there are more: it may be anywhere.
const ANYWHERE: &str = "/";
const WILD: [char; 3] = ['*', '?', '['];
/// Variables that the shell and the command sandbox set themselves.
const OF_COMMANDS: [&str; 5] = ["TMPDIR", "OLDPWD", "RANDOM", "SECONDS", "HOSTNAME"];

/// Resolves what the words of a line may name.
pub(super) struct Paths<'a> {
    commands: &'a [Command],
    begins: &'a Path,
    /// The whole line is understood: nothing else in it sets a variable.
    is_certain: bool,
    lookups: Cell<usize>,
}

impl<'a> Paths<'a> {
    pub(super) fn new(line: &'a Line, begins: &'a Path) -> Self {
        Self {
            commands: &line.commands,
            begins,
            is_certain: line.doubt.is_none(),
            lookups: Cell::new(0),
        }
    }

    /// Returns what a word may name, given the variables of the line and the environment; for a wildcard, the folder in which
    /// names are searched. Empty for what only a program knows.
    pub(super) fn of(&self, word: &Word) -> Vec<String> {
        if let Some(path) = known(word) {
            return vec![path];
        }
        let texts = possible(word, &|name| self.values(name, &[]));
        texts
            .iter()
            .map(|text| without_wildcard(&expanded(text)))
            .filter(|path| self.may_be_meant(path))
            .collect()
    }

    /// Makes a path absolute relative to the folder in which the line starts.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        self.begins.join(path)
    }

    /// An unset variable turns what follows it into a path from the root folder: such a path is ignored if it does not exist.
    fn may_be_meant(&self, path: &str) -> bool {
        let path = self.absolute(path);
        let parent = path.parent().filter(|it| it.parent().is_some());
        path.symlink_metadata().is_ok() || parent.is_some_and(Path::is_dir)
    }

    /// Returns the possible values of a variable: that at the start of the line, and all that the line assigns. `within`:
    /// variables whose values are being resolved.
    fn values(&self, name: &str, within: &[&str]) -> Vec<String> {
        if OF_COMMANDS.contains(&name) {
            return Vec::new();
        }
        match name {
            "PWD" => return vec![self.begins.display().to_string()],
            "?" | "$" | "#" => return vec!["0".to_owned()],
            "@" | "*" => return self.arguments(),
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => return self.arguments(),
            _ => {}
        }
        let lookups = self.lookups.replace(self.lookups.get() + 1);
        if lookups > MAX_LOOKUPS {
            return vec![ANYWHERE.to_owned()];
        }
        let mut values: Vec<String> = std::env::var(name).into_iter().collect();
        if within.contains(&name) {
            return values;
        }
        let within = [within, &[name]].concat();
        let mut is_set = !values.is_empty();
        for command in self.commands {
            for word in command.assigned.iter().chain(&command.words) {
                let Some((left, raw)) = word.raw.split_once('=') else {
                    continue;
                };
                let adds = left.strip_suffix('+') == Some(name);
                if left != name && !adds {
                    continue;
                }
                is_set = true;
                let right = Word {
                    raw: raw.to_owned(),
                    ..Word::default()
                };
                let more = possible(&right, &|other| {
                    if other == name {
                        values.clone()
                    } else {
                        self.values(other, &within)
                    }
                });
                let joined: Vec<String> = values
                    .iter()
                    .filter(|_| adds)
                    .flat_map(|it| more.iter().map(move |more| format!("{it}{more}")))
                    .collect();
                values.extend(joined.into_iter().chain(more));
                values.sort();
                values.dedup();
                if values.len() > MAX_VALUES {
                    return vec![ANYWHERE.to_owned()];
                }
            }
        }
        if !is_set && self.is_certain {
            values.push(String::new());
        }
        values
    }

    /// Returns the possible parameters of a shell that the line starts (`sh -c 'cat $1' a /etc/passwd`); empty in the line
    /// itself.
    fn arguments(&self) -> Vec<String> {
        let is_shell = |command: &&Command| {
            let program = command.program().unwrap_or_default();
            let name = program.rsplit('/').next().unwrap_or_default();
            super::SHELLS.contains(&name)
        };
        let words = self.commands.iter().filter(is_shell);
        let mut values: Vec<String> = words
            .flat_map(|it| it.words.iter().filter_map(known))
            .collect();
        values.push(String::new());
        values
    }
}

fn possible(word: &Word, variable: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let texts = word.possible(variable);
    texts.unwrap_or_else(|| vec![ANYWHERE.to_owned()])
}

/// Returns the folder in which a path with a wildcard is searched. A path with `..` after the wildcard is unchanged.
fn without_wildcard(path: &str) -> String {
    let mut parts = Path::new(path).components();
    let is_wild = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(WILD);
    let folder: PathBuf = parts.by_ref().take_while(|part| !is_wild(part)).collect();
    if !path.contains(WILD) || parts.any(|part| part == Component::ParentDir) {
        return path.to_owned();
    }
    if folder.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        folder.display().to_string()
    }
}
