//! The folders in which a command of a line may run, after `cd` and similar commands before it.

use crate::Word;

/// Maximum number of folders that are tracked.
const MAX_FOLDERS: usize = 8;

/// Folders relative to the one in which the line starts, which is the empty text. `None`: unknown.
pub(crate) type Folders = Option<Vec<String>>;

/// The reader's current state.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Where the next command runs.
    here: Folders,
    /// Where any command before it ran, or may have left the shell.
    reached: Folders,
}

impl Walk {
    /// Starts at the beginning of a line.
    pub(crate) fn begin() -> Self {
        Self::at(Some(vec![String::new()]))
    }

    /// Starts at the beginning of a line that a command of another line runs in its own shell.
    pub(crate) fn nested(&self) -> Self {
        Self::at(self.here.clone())
    }

    /// Starts in an unknown folder.
    pub(crate) fn unknown() -> Self {
        Self::at(None)
    }

    /// Returns whether a command changed the folder.
    pub(crate) fn has_moved(&self) -> bool {
        self.reached.as_ref().is_none_or(|it| it.len() > 1)
    }

    fn at(folders: Folders) -> Self {
        Self {
            reached: folders.clone(),
            here: folders,
        }
    }

    /// Returns where the next command runs.
    pub(crate) fn here(&self) -> Folders {
        self.here.clone()
    }

    /// The next command runs regardless of the outcome of those before it: a `cd` may have failed, been skipped, or run in a
    /// subshell.
    pub(crate) fn part(&mut self) {
        self.here.clone_from(&self.reached);
    }

    /// Records that a command of these words was read. `plain`: the shell runs it itself, if it runs it at all.
    pub(crate) fn after(&mut self, words: &[Word], plain: bool) {
        let Some(next) = self.target(words) else {
            return;
        };
        self.reached = both(&self.reached, &next);
        self.here = if plain { next } else { both(&self.here, &next) };
    }

    /// Returns where it changes to; `None` for a command that changes no folder.
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
        let join = |from: &String| {
            if from.is_empty() {
                name.to_owned()
            } else {
                format!("{from}/{name}")
            }
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
