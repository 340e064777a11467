//! New files with names that rules deny to change (`"edit": {"*.lock": "deny"}`). Existing files are read-only for a command; a missing
//! file cannot be mounted read-only, so a new one is moved aside when the command has ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_kernel::permission::matches;
use outrigger_kernel::permission::paths::{denies_folder, denies_path};
use outrigger_protocol::permission::Rule;
use outrigger_sandbox::absent::{FolderEntry, SUFFIX};
use outrigger_sandbox::path_masks::{self, Cover, Covers};
use outrigger_sandbox::{Policy, SandboxError};

use super::PathRules;

/// Names in a message.
const MAX_NAMED: usize = 5;

/// What git and package managers fill with names of their own, which no rule means: without them they would be broken.
const OF_PROGRAMS: [&str; 2] = [".git", "node_modules"];

impl PathRules {
    /// Has the names that these rules deny to change stay free where nothing is now. `kept` is what of the project is kept from the process.
    pub fn keep_free(self, policy: &mut Policy, kept: &Covers) {
        let is_about_changes = |rule: &Rule| matches(&rule.permission, "edit");
        if !self.denials().any(is_about_changes) {
            return;
        }
        let there: BTreeSet<PathBuf> = kept.hide.iter().chain(&kept.read_only).cloned().collect();
        policy.clear = policy.clear.clone().and(Arc::new(move |has_ended| {
            let undone = has_ended.then(|| self.take_back(&there));
            undone.flatten().into_iter().collect()
        }));
    }

    /// Moves aside what came under such names, and says what that was. Walks the project: blocking.
    fn take_back(&self, there: &BTreeSet<PathBuf>) -> Option<String> {
        let found = match self.names_denied() {
            Ok(found) => found,
            Err(error) => {
                return Some(format!(
                    "Cannot check whether files were created that rules deny to change: {error}"
                ));
            }
        };
        let worktree = self.worktree();
        let base = worktree.canonicalize().ok()?;
        let is_new = |path: &Path| !path.ancestors().any(|it| there.contains(it));
        let mut names: Vec<String> = Vec::new();
        for path in found.into_iter().filter(|it| is_new(it)) {
            let Ok(name) = path.strip_prefix(worktree) else {
                continue;
            };
            let entry = FolderEntry::of(&base, &base.join(name));
            match entry.and_then(|it| it.move_aside()) {
                Some(_) => names.push(name.display().to_string()),
                None if path.is_symlink() || path.exists() => {
                    tracing::error!("[sandbox] cannot rename {}: remove it", path.display())
                }
                None => {}
            }
        }
        let more = names.len().saturating_sub(MAX_NAMED);
        names.truncate(MAX_NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        (!names.is_empty()).then(|| {
            format!(
                "Rules deny changes of {}: what came there while the command ran is renamed to NAME{SUFFIX}-*. The user can rename it back, or \
                 allow it in `permission.edit`.",
                names.join(", ")
            )
        })
    }

    /// What is there of the names that a rule denies to change, the outermost of each.
    fn names_denied(&self) -> Result<Vec<PathBuf>, SandboxError> {
        let worktree = self.worktree();
        let found = path_masks::find(worktree, |name, is_dir| {
            let last = name.rsplit('/').next().unwrap_or_default();
            match self.denies_edit(&worktree.join(name), is_dir) {
                true => Cover::ReadOnly,
                // Not looked into.
                false if is_dir && OF_PROGRAMS.contains(&last) => Cover::Hidden,
                false => Cover::None,
            }
        })?;
        Ok(found.read_only)
    }

    fn denies_edit(&self, path: &Path, is_dir: bool) -> bool {
        let names = self.access.names(path);
        let below = |name: &str| self.access.names(&path.join(name));
        denies_path("edit", &names, &self.rules)
            || is_dir && denies_folder("edit", &names, below, &self.rules)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use outrigger_protocol::permission::Action;
    use outrigger_workspace::ProjectLocation;

    use super::*;
    use crate::access::Access;

    fn rule(pattern: &str, action: Action) -> Rule {
        Rule {
            permission: "edit".into(),
            pattern: pattern.into(),
            action,
        }
    }

    fn write(root: &Path, names: &[&str]) {
        for name in names {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), *name).unwrap();
        }
    }

    /// What is there, what came aside without the end that nobody knows before.
    fn listing(root: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path.clone());
                } else {
                    let name = path.strip_prefix(root).unwrap().display().to_string();
                    let (before, aside) = name.split_once(SUFFIX).unwrap_or((&name, ""));
                    let below = aside.split_once('/').map_or("", |it| it.1);
                    let mark = if aside.is_empty() { "" } else { " aside" };
                    let slash = if below.is_empty() { "" } else { "/" };
                    names.push(format!("{before}{slash}{below}{mark}"));
                }
            }
        }
        names.sort();
        names
    }

    #[test]
    fn what_a_command_made_under_a_denied_name_is_moved_aside() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let location = ProjectLocation {
            directory: root.clone(),
            worktree: root.clone(),
            git: true,
        };
        write(&root, &["old.lock", "src/a.rs", "gen/old"]);
        let rules = [
            rule("*.lock", Action::Deny),
            rule("gen/*", Action::Deny),
            rule("made/*", Action::Deny),
            rule("free.lock", Action::Allow),
        ];
        let rules = Access::new(&location, &root.join("home")).rules(&[&rules]);
        let there = || -> BTreeSet<PathBuf> {
            let kept = rules.covers().unwrap();
            kept.hide.into_iter().chain(kept.read_only).collect()
        };
        let before = there();
        assert_eq!(rules.take_back(&before), None);
        write(
            &root,
            &[
                "old.lock",
                "new.lock",
                "free.lock",
                "src/b.rs",
                "src/deep/Cargo.lock",
                "gen/new",
                "made/one",
                "made/two.lock",
                "node_modules/x/yarn.lock",
                ".git/index.lock",
            ],
        );
        std::os::unix::fs::symlink("/etc/passwd", root.join("link.lock")).unwrap();
        let undone = rules.take_back(&before).unwrap();
        assert!(
            undone.starts_with(
                "Rules deny changes of link.lock, made, new.lock, src/deep/Cargo.lock: "
            ),
            "{undone}"
        );
        assert_eq!(
            listing(&root),
            [
                ".git/index.lock",
                "free.lock",
                // The folder is read-only for a command.
                "gen/new",
                "gen/old",
                "link.lock aside",
                "made/one aside",
                "made/two.lock aside",
                "new.lock aside",
                "node_modules/x/yarn.lock",
                "old.lock",
                "src/a.rs",
                "src/b.rs",
                "src/deep/Cargo.lock aside",
            ]
        );
        assert!(Path::new("/etc/passwd").exists());
        // For the next command that is there.
        assert_eq!(rules.take_back(&there()), None);
    }

    #[test]
    fn rules_that_deny_no_change_of_certain_files_keep_no_name_free() {
        let location = ProjectLocation {
            directory: "/p".into(),
            worktree: "/p".into(),
            git: true,
        };
        for (rules, want) in [
            (vec![rule("*", Action::Deny)], false),
            (vec![rule("*.lock", Action::Allow)], false),
            (vec![rule("*.lock", Action::Deny)], true),
        ] {
            let mut policy = Policy::default();
            let rules = Access::new(&location, Path::new("/home/me")).rules(&[&rules]);
            rules.keep_free(&mut policy, &Covers::default());
            assert_eq!(policy.clear != Policy::default().clear, want);
        }
    }
}
