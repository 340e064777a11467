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

    /// Returns the texts that a word of any program may stand for, with each alternative of its braces and the defaults of its
    /// variables; of a word that only the shell knows, its literal parts.
    pub(super) fn texts(&self, word: &Word) -> Vec<String> {
        if let Some(value) = word.known() {
            return vec![value.to_owned()];
        }
        let mut texts = Vec::new();
        for raw in alternatives(&word.raw) {
            let alternative = Word {
                raw,
                ..Word::default()
            };
            let found = possible(&alternative, &|name| self.values(name, &[]));
            if found.is_empty() {
                texts.extend(literals(&alternative.raw));
            }
            texts.extend(found);
        }
        texts
    }

    /// Returns the folder in which the line starts.
    pub(super) fn begins(&self) -> &Path {
        self.begins
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

/// Returns the literal parts of a word that only the shell knows, without what follows something unknown (`"$x"/*`).
fn literals(raw: &str) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "\"'`$(){};|&<>".contains(c);
    let mut parts = Vec::new();
    let mut start = 0;
    let ends = raw.char_indices().filter(|(_, c)| is_end(*c));
    let ends = ends.map(|(at, c)| (at, at + c.len_utf8()));
    for (end, next) in ends.chain([(raw.len(), raw.len())]) {
        let before = raw.get(..start).unwrap_or_default();
        let goes_on = before.len() > 1 && before.ends_with(['"', '\'', '}', ')', '$']);
        parts.extend(raw.get(start..end).filter(|_| !goes_on).map(str::to_owned));
        start = next;
    }
    parts
}

/// Returns a word as written with its braces expanded, and with the text of `${x:-text}` in its place.
fn alternatives(raw: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut pending = vec![raw.to_owned()];
    while let Some(raw) = pending.pop() {
        match innermost(&raw) {
            Some((before, inner, after)) if done.len() + pending.len() < MAX_VALUES => {
                let inner = inner.into_iter();
                pending.extend(inner.map(|it| format!("{before}{it}{after}")));
            }
            _ => done.push(raw),
        }
    }
    done
}

/// Returns the first brace without another one in it that has alternatives, with what is before and after it.
fn innermost(raw: &str) -> Option<(&str, Vec<&str>, &str)> {
    raw.match_indices('}').find_map(|(end, _)| {
        let (before, inner) = raw.get(..end)?.rsplit_once('{')?;
        let after = raw.get(end + 1..)?;
        let Some(before) = before.strip_suffix('$') else {
            let is_list = inner.contains(',');
            return is_list.then(|| (before, inner.split(',').collect(), after));
        };
        let name = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let operator = inner.get(name..)?;
        let text = operator.strip_prefix(':').unwrap_or(operator);
        let text = text.strip_prefix(['-', '=', '+'])?;
        Some((before, vec![text, ""], after))
    })
}

/// Returns the folder in which a path with a wildcard is searched. A path with `..` after the wildcard is unchanged.
pub(super) fn without_wildcard(path: &str) -> String {
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
