//! Looking for repositories and start-up files below a project: nearest folders first, and not for ever.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Repository, repository_in};
use crate::nested_startup::{is_candidate, is_workspace};

/// How deep below the project's root is looked for repositories that the index does not name, and for start-up files.
pub(super) const DEPTH: usize = 8;
/// The same for settings of agents that work in folders below.
pub(crate) const SETTINGS_DEPTH: usize = 3;
/// Files and folders that are looked at for them.
const MAX_ENTRIES: usize = 4000;
/// What holds very many files and is not worked in: what lies right in them is looked at, and last.
const LARGE: [&str; 3] = ["node_modules", "target", ".venv"];

/// What lies not far below the root.
pub(super) struct Walked {
    pub(super) repositories: Vec<Repository>,
    /// Files and folders of names that make something run later, by path from the root.
    pub(super) startup: Vec<PathBuf>,
    /// Nothing was left out for there being too much.
    pub(super) is_whole: bool,
}

/// Files and folders not far below a root that make something run later, by path from it; `None` where not all were looked at.
pub(crate) fn startup_below(root: &Path) -> Option<Vec<PathBuf>> {
    let walked = walk(root, SETTINGS_DEPTH);
    walked.is_whole.then_some(walked.startup)
}

/// What lies in folders not far below the root.
pub(super) fn walk(worktree: &Path, max_depth: usize) -> Walked {
    let mut found = Walked {
        repositories: Vec::new(),
        startup: Vec::new(),
        is_whole: true,
    };
    let mut waiting = VecDeque::from([(PathBuf::new(), 0)]);
    let mut large = VecDeque::new();
    let mut seen = 0;
    while let Some((folder, depth)) = waiting.pop_front().or_else(|| large.pop_front()) {
        let entries = fs::read_dir(worktree.join(&folder)).into_iter();
        for entry in entries.flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                found.is_whole = false;
                return found;
            }
            let name = entry.file_name();
            let kind = entry.file_type();
            // The root's own are looked at elsewhere, but for names that nobody can list and links in the place of folders.
            let is_link = kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            if is_candidate(&name) && (depth > 0 || is_link || is_workspace(&name)) {
                found.startup.push(folder.join(&name));
            }
            let is_folder = kind.is_ok_and(|it| it.is_dir());
            if !is_folder || name == ".git" {
                continue;
            }
            let is_large = LARGE.iter().any(|it| name == *it);
            let folder = folder.join(name);
            let repository = repository_in(worktree, folder.clone());
            let is_bare = repository.as_ref().is_some_and(Repository::is_bare);
            found.repositories.extend(repository);
            // Anybody can make the marks of a repository: what lies in one is looked at as well, but last.
            if is_large {
                large.push_back((folder, max_depth));
            } else if depth + 1 < max_depth {
                let list = if is_bare { &mut large } else { &mut waiting };
                list.push_back((folder, depth + 1));
            }
        }
    }
    found
}
