//! What a plugin's process cannot change although it may write to the project, since processes without a box, the user's own
//! among them, do what it says: settings that name programs, and what git runs (issue 5, item 5).

use std::path::{Path, PathBuf};

use outrigger_sandbox::Policy;

/// Files and folders of a project that say which programs are started, ours and those of others that this program reads.
pub const SETTINGS: [&str; 6] = [
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

/// Folders that hold some of it. They stay where they are, or others could be put in their place.
const HELD: [&str; 2] = [".git", ".claude"];
/// Repositories of submodules lie so deep in each other at most.
const DEEPEST: usize = 4;

/// What is there of all that, from the folder up to the root of the working tree, but for what the user grants: by naming it,
/// or a folder in it that it lies in.
pub(crate) fn keep(policy: &mut Policy, [folder, root]: [&Path; 2], granted: &[PathBuf]) {
    let below = folder.ancestors().take_while(|it| it.starts_with(root));
    for folder in below
        .chain([folder, root])
        .filter(|it| it.parent().is_some())
    {
        policy.held.extend(HELD.map(|name| folder.join(name)));
        let git = folder.join(".git");
        // Of a linked worktree or a submodule: the file says where the repository is.
        if git.is_file() && !policy.read_only.contains(&git) {
            policy.read_only.push(git.clone());
        }
        submodules(&git.join("modules"), DEEPEST, &mut policy.read_only);
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

/// The settings and hooks of submodules' repositories.
fn submodules(folder: &Path, deepest: usize, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for module in entries.map(|entry| entry.path()) {
        // A name with slashes is as many folders.
        if !module.join("HEAD").is_file() {
            if deepest > 0 && module.is_dir() && !module.is_symlink() {
                submodules(&module, deepest - 1, found);
            }
            continue;
        }
        found.extend(["config", "hooks"].map(|name| module.join(name)));
        if deepest > 0 {
            submodules(&module.join("modules"), deepest - 1, found);
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

    #[test]
    fn what_git_reads_of_others_is_kept_too() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for file in [
            "main/.git/modules/a/b/HEAD",
            "main/.git/modules/a/b/modules/c/HEAD",
            "main/sub/opencode.json",
            "side/.git",
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        for (folder, worktree, want) in [
            (
                "main/sub/deep",
                "main",
                vec![
                    "main/sub/opencode.json",
                    "main/.git/modules/a/b/config",
                    "main/.git/modules/a/b/hooks",
                    "main/.git/modules/a/b/modules/c/config",
                    "main/.git/modules/a/b/modules/c/hooks",
                ],
            ),
            ("side", "side", vec!["side/.git"]),
        ] {
            let mut policy = Policy::default();
            keep(&mut policy, [&root.join(folder), &root.join(worktree)], &[]);
            policy.read_only.sort();
            policy.read_only.dedup();
            let mut want: Vec<PathBuf> = want.iter().map(|name| root.join(name)).collect();
            want.sort();
            assert_eq!(policy.read_only, want, "{folder}");
            assert!(policy.held.contains(&root.join(worktree).join(".git")));
        }
    }
}
