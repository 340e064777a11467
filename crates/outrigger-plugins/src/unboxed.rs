//! What a plugin's process cannot change although it may write to the project, since processes without a box, the user's own
//! among them, do what it says: settings that name programs, and what git runs (issue 5, item 5).

use std::path::{Path, PathBuf};

use outrigger_sandbox::Policy;

/// Files and folders of a project that say which programs are started, ours and those of others that this program reads.
const SETTINGS: [&str; 6] = [
    "opencode.json",
    "opencode.jsonc",
    "outrigger.toml",
    ".mcp.json",
    ".opencode",
    ".outrigger",
];
/// The same of other programs that a person starts in the project.
const OF_OTHERS: [&str; 4] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".git/config",
    ".git/hooks",
];

/// What is there of all that, but for what the user grants: by naming it, or a folder in it that it lies in.
pub(crate) fn keep(policy: &mut Policy, folders: [&Path; 2], granted: &[PathBuf]) {
    for folder in folders
        .into_iter()
        .filter(|folder| folder.parent().is_some())
    {
        for name in SETTINGS.iter().chain(&OF_OTHERS) {
            let path = folder.join(name);
            let is_granted = granted
                .iter()
                .any(|it| path.starts_with(it) && it.starts_with(folder) && it != folder);
            if !is_granted && path.exists() && !policy.read_only.contains(&path) {
                policy.read_only.push(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_kept_unless_it_is_granted() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for file in [
            "opencode.json",
            ".git/config",
            ".git/hooks/x",
            ".opencode/command/a.md",
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let all = ["opencode.json", ".opencode", ".git/config", ".git/hooks"];
        for (granted, want) in [
            (vec![], &all[..]),
            (vec![""], &all[..]),
            (vec![".git"], &all[..2]),
            (vec![".opencode", ".git"], &all[..1]),
            (vec!["opencode.json"], &all[1..]),
        ] {
            let granted: Vec<PathBuf> = granted.iter().map(|name| root.join(name)).collect();
            let mut policy = Policy::default();
            keep(&mut policy, [root, root], &granted);
            let want: Vec<PathBuf> = want.iter().map(|name| root.join(name)).collect();
            assert_eq!(policy.read_only, want, "{granted:?}");
        }
    }
}
