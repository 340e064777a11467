//! Files of a repository that make git run a program, or redirect its settings. No plugin, server or command can change them, or
//! create them if they do not exist.

use std::path::{Path, PathBuf};

use crate::git_config;

/// In every repository. `commondir` gives the path of settings and hooks, `alternates` that of objects.
const NAMES: [&str; 9] = [
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "info/attributes",
    // Old location of remotes.
    "remotes",
    "branches",
    "objects/info/alternates",
    "objects/info/http-alternates",
];
/// Names in a linked worktree's folder (`worktrees/NAME`).
const OF_WORKTREES: [&str; 3] = ["commondir", "gitdir", "config.worktree"];
/// Maximum number of linked worktrees that are checked.
const MAX_WORKTREES: usize = 200;

/// Maximum number of included settings files.
const MAX_INCLUDED: usize = 64;

/// Returns those of a repository's own folder (`.git`), existing or not. Reads its settings.
#[must_use]
pub fn of_repository(git: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = NAMES.iter().map(|name| git.join(name)).collect();
    let linked = std::fs::read_dir(git.join("worktrees")).into_iter();
    for entry in linked.flatten().flatten().take(MAX_WORKTREES) {
        found.extend(OF_WORKTREES.iter().map(|name| entry.path().join(name)));
    }
    found.extend(included(&git.join("config")));
    // Without a valid `.git` the parent folder counts as a repository if it has this file.
    let around = git.parent().filter(|_| git.ends_with(".git"));
    found.extend(
        around
            .filter(|it| !is_repository(it))
            .map(|it| it.join("HEAD")),
    );
    found
}

/// Returns the files that git settings include (`include.path`). Hooks at a `core.hooksPath` in the project are part of it, like
/// its scripts.
#[must_use]
pub fn included(config: &Path) -> Vec<PathBuf> {
    let mut found = taken_in_by(config);
    let mut read: Vec<PathBuf> = config.canonicalize().into_iter().collect();
    // Their includes too, existing or not. They may be circular, under other names.
    let mut at = 0;
    while let Some(next) = found.get(at).filter(|_| found.len() < MAX_INCLUDED) {
        at += 1;
        let Ok(real) = next.canonicalize() else {
            continue;
        };
        if !read.contains(&real) {
            let more = taken_in_by(next);
            read.push(real);
            found.extend(more);
        }
    }
    found
}

fn taken_in_by(config: &Path) -> Vec<PathBuf> {
    let base = config.parent().unwrap_or(Path::new("/"));
    git_config::read(config)
        .into_iter()
        .filter(|it| matches!(it.section.as_str(), "include" | "includeif") && it.name == "path")
        .filter(|it| !it.text().is_empty() && !it.text().starts_with('~'))
        .map(|it| base.join(it.text()))
        .collect()
}

/// Returns the hooks folder in the settings of a repository, if set: relative to the work tree.
#[must_use]
pub fn hooks_path(git: &Path, worktree: &Path) -> Option<PathBuf> {
    let settings = git_config::read(&git.join("config")).into_iter();
    let mut named = settings.filter(|it| it.key() == "core.hookspath");
    let named = named.next_back()?;
    Some(worktree.join(named.text()))
}

/// Returns whether a folder is a repository, a `.git` or a bare one.
#[must_use]
pub fn is_repository(folder: &Path) -> bool {
    let there = |name: &str| folder.join(name).symlink_metadata().is_ok();
    there("HEAD") && (there("objects") && there("refs") || there("commondir"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_settings_of_git_take_in() {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join("config");
        let text = "[core]\n\tbare = false\n[include]\n\tpath = ../shared\n\
            [includeIf \"gitdir:x\"] path = \"/etc/more\"\n[a] path = no\n[include] path=~/x\n";
        std::fs::write(&config, text).unwrap();
        let want = [root.path().join("../shared"), "/etc/more".into()];
        assert_eq!(included(&config), want);
        // An included file includes more, which may be missing or circular.
        std::fs::create_dir(root.path().join("sub")).unwrap();
        std::fs::write(root.path().join("c"), "[include]\npath = sub/d\n").unwrap();
        std::fs::write(
            root.path().join("sub/d"),
            "[include]\npath = ../c\n path = e\n",
        )
        .unwrap();
        let chain = included(&root.path().join("c"));
        let names = ["sub/d", "sub/../c", "sub/e"].map(|name| root.path().join(name));
        assert!(names.iter().all(|name| chain.contains(name)), "{chain:?}");
        assert!(chain.len() < 10, "{chain:?}");
        assert!(included(root.path()).is_empty());
    }
}
