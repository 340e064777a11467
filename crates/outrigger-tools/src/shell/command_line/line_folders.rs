//! Programs that a command names by a relative path. In a rule, such a path means the file in the session's folder, so what runs
//! elsewhere is asked about by its location.

use std::path::{Component, Path, PathBuf};

use outrigger_shell_parse::{Command, Word};

use super::expanded;

/// Programs that run the file named by their first argument.
const INTERPRETERS: &[&str] = &[
    "bun", "deno", "lua", "node", "nodejs", "perl", "php", "python", "python2", "python3", "ruby",
    "Rscript", "ts-node", "tsx",
];
const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"];

/// Where a line starts, and the folder of relative names in rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineFolders<'a> {
    /// The folder of the session.
    pub(crate) session: &'a Path,
    /// The folder in which the line starts.
    pub(crate) begins: &'a Path,
}

/// How a command is named in the question.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// As written.
    AsWritten,
    /// With this word replaced by each of these names of the program or script, since it runs in other folders.
    Elsewhere(usize, Vec<String>),
    /// The folder in which it runs a relative program or script is unknown.
    Unknown,
}

impl LineFolders<'_> {
    /// For cases where only the line is known: it starts in the session's folder.
    pub(crate) fn unknown() -> Self {
        let here = Path::new("");
        Self {
            session: here,
            begins: here,
        }
    }

    /// Returns how the program or script of a command is named.
    pub(super) fn named(&self, command: &Command) -> Named {
        let Some((at, name)) = relative_program(command) else {
            return Named::AsWritten;
        };
        let Some(folders) = &command.folders else {
            return Named::Unknown;
        };
        let is_there =
            |folder: &String| lexical(&self.begins.join(expanded(folder))) == lexical(self.session);
        if folders.iter().all(is_there) {
            Named::AsWritten
        } else {
            let seen = folders.iter().map(|folder| self.seen(folder, name));
            Named::Elsewhere(at, seen.collect())
        }
    }

    /// Marks a line that is not understood with the folder in which it runs.
    pub(super) fn whole(&self, line: &str) -> String {
        if lexical(self.begins) == lexical(self.session) {
            line.to_owned()
        } else {
            format!(
                "cd {} && {line}",
                quoted(&self.seen_from_session(self.begins))
            )
        }
    }

    /// Returns a relative name as it would be written in the session's folder.
    fn seen(&self, folder: &str, name: &str) -> String {
        let folder = self.begins.join(expanded(folder));
        let path = self.seen_from_session(&folder.join(name));
        let dotted = name.starts_with('.') && !path.starts_with(['/', '.', '~']);
        quoted(&if dotted { format!("./{path}") } else { path })
    }

    fn seen_from_session(&self, path: &Path) -> String {
        let path = lexical(path);
        let rest = path.strip_prefix(lexical(self.session));
        let shown = rest.unwrap_or(&path).display().to_string();
        if shown.is_empty() {
            ".".to_owned()
        } else {
            shown
        }
    }
}

/// Returns the word that names a file to run by a relative path.
fn relative_program(command: &Command) -> Option<(usize, &str)> {
    let program = command.program()?;
    if program.contains('/') {
        return is_relative(program).then_some((0, program));
    }
    let is_shell = SHELLS.contains(&program);
    if !is_shell && !INTERPRETERS.contains(&program) {
        return None;
    }
    let is_line = |word: &Word| is_shell && word.value.starts_with('-') && word.value.contains('c');
    if command.words.iter().any(is_line) {
        return None;
    }
    let mut arguments = command.words.iter().enumerate().skip(1);
    let (at, script) = arguments.find(|(_, word)| !word.value.starts_with(['-', '+']))?;
    let script = script.known()?;
    let is_file = is_shell || script.contains(['/', '.']);
    (is_file && is_relative(script)).then_some((at, script))
}

fn is_relative(name: &str) -> bool {
    !name.starts_with(['/', '~'])
}

/// Removes `.` and, as shells do after `cd`, `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(out.components().next_back(), Some(Component::Normal(_))) =>
            {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+~@,:".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
