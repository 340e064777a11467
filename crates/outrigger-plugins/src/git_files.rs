//! Files of a repository that make git run a program, or take its settings from elsewhere. Nothing that works for somebody else
//! changes them, or makes them where they are not (issue 18, finding 6).

use std::path::{Path, PathBuf};

/// In every repository. `commondir` says where the settings and hooks are, `alternates` where objects are.
const NAMES: [&str; 9] = [
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "info/attributes",
    // Where remotes stood before they were settings.
    "remotes",
    "branches",
    "objects/info/alternates",
    "objects/info/http-alternates",
];
/// Names of a linked worktree's folder (`worktrees/NAME`).
const OF_WORKTREES: [&str; 3] = ["commondir", "gitdir", "config.worktree"];
/// Most linked worktrees that are looked at.
const MOST_WORKTREES: usize = 200;

/// Of a repository's own folder (`.git`), whether they are there or not. Reads its settings.
#[must_use]
pub fn of_repository(git: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = NAMES.iter().map(|name| git.join(name)).collect();
    let linked = std::fs::read_dir(git.join("worktrees")).into_iter();
    for entry in linked.flatten().flatten().take(MOST_WORKTREES) {
        found.extend(OF_WORKTREES.iter().map(|name| entry.path().join(name)));
    }
    found.extend(included(&git.join("config")));
    found
}

/// Files that settings of git take more settings from (`include.path`). Hooks that `core.hooksPath` has in the project are part of
/// it, as its scripts are.
#[must_use]
pub fn included(config: &Path) -> Vec<PathBuf> {
    let base = config.parent().unwrap_or(Path::new("/"));
    let Ok(text) = outrigger_files::read_to_string(config, outrigger_files::SETTINGS) else {
        return Vec::new();
    };
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split([' ', '\t', ']', '"', '.']).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
        }
        // A setting may stand behind its section, on the same line.
        let setting = line.rsplit_once(']').map_or(line, |(_, behind)| behind);
        let Some((name, value)) = setting.split_once('=') else {
            continue;
        };
        let is_path = name.trim().eq_ignore_ascii_case("path");
        if !is_path || !matches!(section.as_str(), "include" | "includeif") {
            continue;
        }
        let value = value.trim().trim_matches('"');
        if !value.is_empty() && !value.starts_with('~') {
            found.push(base.join(value));
        }
    }
    found
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
        assert!(included(root.path()).is_empty());
    }
}
