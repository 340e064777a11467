//! Finding repositories and start-up files below a project: by names alone, nearest folders first, and completely.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Repository, repository_in};
use crate::nested_startup::{is_candidate, is_workspace};

/// Maximum number of files and folders checked in a project. Only an absurd or a malicious project has more.
pub(crate) const MAX_NAMES: usize = 1_000_000;
/// Folders with very many files that are not worked in.
const LARGE: [&str; 3] = ["node_modules", "target", ".venv"];

/// Extent of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Of folders that are not worked in, only direct entries: packages contain files of all these names.
    Worked,
    All,
}

/// Entries below the root.
pub(super) struct Walked {
    pub(super) repositories: Vec<Repository>,
    /// Files and folders whose names make something run later, by path relative to the root.
    pub(super) startup: Vec<PathBuf>,
    /// Folders that are not worked in, if known.
    pub(super) large: Vec<PathBuf>,
    /// Nothing was skipped because there was too much.
    pub(super) is_whole: bool,
}

/// Walks the folders below the root.
pub(super) fn walk(worktree: &Path, extent: Extent) -> Walked {
    walk_at_most(worktree, vec![PathBuf::new()], extent, MAX_NAMES)
}

/// Returns start-up files in these folders, by path relative to the root, including those of packages.
pub(super) fn startup_in(worktree: &Path, folders: Vec<PathBuf>) -> Vec<PathBuf> {
    walk_at_most(worktree, folders, Extent::All, MAX_NAMES).startup
}

fn walk_at_most(worktree: &Path, folders: Vec<PathBuf>, extent: Extent, mut left: usize) -> Walked {
    let mut found = Walked {
        repositories: Vec::new(),
        startup: Vec::new(),
        large: Vec::new(),
        is_whole: true,
    };
    let mut waiting = VecDeque::from(folders);
    let mut last = VecDeque::new();
    loop {
        let is_last = waiting.is_empty();
        let Some(folder) = waiting.pop_front().or_else(|| last.pop_front()) else {
            return found;
        };
        let is_root = folder.as_os_str().is_empty();
        let mut folders = Vec::new();
        let mut is_marked = false;
        let entries = fs::read_dir(worktree.join(&folder)).into_iter();
        for entry in entries.flatten().flatten() {
            if left == 0 {
                found.is_whole = false;
                return found;
            }
            left -= 1;
            let name = entry.file_name();
            // The system returns the type along with the name.
            let kind = entry.file_type();
            // The root's own files are checked elsewhere, except names that cannot be listed and links in place of folders.
            let is_link = kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            if is_candidate(&name) && (!is_root || is_link || is_workspace(&name)) {
                found.startup.push(folder.join(&name));
            }
            is_marked |= name == ".git" || name == "HEAD";
            if name != ".git" && kind.is_ok_and(|it| it.is_dir()) {
                folders.push(name);
            }
        }
        let is_entered = extent == Extent::All || !is_large(folder.file_name());
        let repository = if is_marked && !is_root {
            repository_in(worktree, folder.clone())
        } else {
            None
        };
        // Any process can create a folder that looks like a repository: its content is checked as well, but last.
        let is_bare = repository.as_ref().is_some_and(Repository::is_bare);
        found.repositories.extend(repository);
        for name in folders {
            let below = folder.join(&name);
            if !is_entered {
                found.repositories.extend(repository_in(worktree, below));
            } else if is_last || is_bare || is_large(Some(&name)) {
                last.push_back(below);
            } else {
                waiting.push_back(below);
            }
        }
    }
}

pub(super) fn is_large(name: Option<&OsStr>) -> bool {
    name.is_some_and(|name| LARGE.iter().any(|it| name == *it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_said_and_the_nearest_found() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        for folder in [&root.path().join("a"), &deep] {
            fs::write(folder.join(".envrc"), "").unwrap();
        }
        for (most, whole, found) in [(5, true, 2), (4, false, 1), (2, false, 0)] {
            let root_alone = vec![PathBuf::new()];
            let walked = walk_at_most(root.path(), root_alone, Extent::Worked, most);
            assert_eq!(walked.is_whole, whole, "{most}");
            // The order within a folder is the file system's.
            assert!(walked.startup.len() <= found + 1, "{most}");
            assert!(walked.startup.len() >= found, "{most}");
        }
    }
}
