//! In which folders a command of a line may run: where `cd` and its like lead before it.

use crate::Word;

/// More folders than this are not kept apart.
const MAX_FOLDERS: usize = 8;

/// Folders, relative to the one that the line begins in, which is the empty text. `None`: it is not known which.
pub(crate) type Folders = Option<Vec<String>>;

/// Where the reader is.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Where the next command runs.
    here: Folders,
    /// Where any command before it ran, or may have left the shell.
    reached: Folders,
}

impl Walk {
    /// At the beginning of a line.
    pub(crate) fn begin() -> Self {
        Self::at(Some(vec![String::new()]))
    }

    /// At the beginning of a line that a command of another one runs in a shell of its own.
    pub(crate) fn nested(&self) -> Self {
        Self::at(self.here.clone())
    }

    /// Of a command that may run in any folder.
    pub(crate) fn unknown() -> Self {
        Self::at(None)
    }

    /// Whether a command led somewhere.
    pub(crate) fn has_moved(&self) -> bool {
        self.reached.as_ref().is_none_or(|it| it.len() > 1)
    }

    fn at(folders: Folders) -> Self {
        Self {
            reached: folders.clone(),
            here: folders,
        }
    }

    /// Where the next command runs.
    pub(crate) fn here(&self) -> Folders {
        self.here.clone()
    }

    /// The next command runs whatever became of those before it: a `cd` may have failed, been skipped, or run in a subshell.
    pub(crate) fn part(&mut self) {
        self.here.clone_from(&self.reached);
    }

    /// A command of these words was read. `plain`: the shell runs it itself, if it runs it at all.
    pub(crate) fn after(&mut self, words: &[Word], plain: bool) {
        let Some(next) = self.target(words) else {
            return;
        };
        self.reached = both(&self.reached, &next);
        self.here = match plain {
            true => next,
            false => both(&self.here, &next),
        };
    }

    /// Where it leads; nothing for a command that changes no folder.
    fn target(&self, words: &[Word]) -> Option<Folders> {
        let (program, arguments) = words.split_first()?;
        let program = program.known()?;
        let arguments = match arguments.split_first() {
            Some((option, rest)) if matches!(option.raw.as_str(), "--" | "-L") => rest,
            _ => arguments,
        };
        Some(match (program, arguments) {
            ("popd", []) => self.reached.clone(),
            ("cd" | "chdir" | "pushd", [folder]) => self.joined(folder),
            ("cd" | "chdir" | "pushd" | "popd", _) => None,
            _ => return None,
        })
    }

    fn joined(&self, folder: &Word) -> Folders {
        let name = folder.known()?;
        if name.is_empty() || name.starts_with(['-', '+']) {
            return None;
        }
        if name.starts_with('~') {
            let raw = folder.raw.trim_start_matches('"');
            let is_home =
                folder.raw == "~" || folder.raw.starts_with("~/") || raw.starts_with("$HOME");
            return is_home.then(|| vec![name.to_owned()]);
        }
        if name.starts_with('/') {
            return Some(vec![name.to_owned()]);
        }
        let join = |from: &String| match from.is_empty() {
            true => name.to_owned(),
            false => format!("{from}/{name}"),
        };
        Some(self.here.as_ref()?.iter().map(join).collect())
    }
}

fn both(a: &Folders, b: &Folders) -> Folders {
    let mut all = a.clone()?;
    for folder in b.as_ref()? {
        if !all.contains(folder) {
            all.push(folder.clone());
        }
    }
    (all.len() <= MAX_FOLDERS).then_some(all)
}
