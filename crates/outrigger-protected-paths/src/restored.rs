//! Without mount namespaces, protected files are not masked while a command runs. Their changes are undone at its end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_sandbox::Policy;
use outrigger_sandbox::absent::{FolderEntry, SUFFIX};

use crate::content::{Before, Content, listed};
use crate::running::{First, Running};

/// Maximum number of files in a folder and below.
const MAX_FILES: usize = 2000;
/// Folders with very many files, which are not read individually.
const LARGE: [&str; 2] = ["node_modules", ".git"];

/// State of running commands.
static RUNNING: Running = Running::new("restored");

/// Protected files as they were before a command.
struct Restored {
    /// Writable folders, without links.
    open: Vec<PathBuf>,
    /// Protected files and folders in there.
    fixed: Vec<PathBuf>,
    before: Arc<First>,
}

/// Restores what this policy protects when the process has ended, if the system has no mount namespaces. Folders too large for
/// that are write-protected: nothing new can be created in them. Blocking.
pub fn restore(policy: &mut Policy, project: &Path) {
    if outrigger_sandbox::has_views() {
        return;
    }
    let restored = Restored::of(policy, project);
    policy.restored.clone_from(&restored.fixed);
    policy.clear = policy.clear.clone().and(Arc::new(move |has_ended| {
        let undone = if has_ended { restored.undo() } else { None };
        undone.into_iter().collect()
    }));
}

impl Restored {
    fn of(policy: &Policy, project: &Path) -> Self {
        let open: Vec<PathBuf> = policy
            .write
            .iter()
            .flat_map(|it| it.canonicalize())
            .collect();
        let mut fixed: Vec<PathBuf> = policy.read_only.iter().map(|it| real(it)).collect();
        fixed.retain(|it| base(&open, it).is_some());
        let mut before = Before::new();
        fixed.retain(|path| {
            let found = files(path);
            let is_kept = |it: &Content| !matches!(it, Content::Other(..));
            let is_small = path.is_dir() || found.values().all(is_kept);
            before.extend(found);
            is_small
        });
        Self {
            before: RUNNING.first(project, before),
            open,
            fixed,
        }
    }

    /// Moves changed and created files aside, restores changed and removed ones, and names them. Blocking.
    fn undo(&self) -> Option<String> {
        let mut now = Before::new();
        for path in &self.fixed {
            now.extend(files(path));
        }
        let before: BTreeSet<&PathBuf> = self.before.keys().collect();
        let all = before.into_iter().chain(now.keys());
        let changed: BTreeSet<&PathBuf> = all
            .filter(|it| self.before.get(*it) != now.get(*it))
            .filter(|it| self.fixed.iter().any(|fixed| it.starts_with(fixed)))
            .collect();
        let mut undone = Vec::new();
        for path in changed {
            let Some(base) = base(&self.open, path) else {
                continue;
            };
            // A folder may have replaced a file.
            let stays = |it: FolderEntry| it.move_aside().is_none();
            if FolderEntry::of(base, path).is_some_and(stays) {
                tracing::error!("[sandbox] cannot rename {}: remove it", path.display());
                continue;
            }
            let again = match self.before.get(path) {
                Some(Content::File { bytes, mode }) => {
                    FolderEntry::free(base, path).and_then(|it| it.write_new(bytes, *mode))
                }
                Some(Content::Link(target)) => {
                    FolderEntry::free(base, path).and_then(|it| it.link_to(target))
                }
                Some(Content::Other(..)) | None => Ok(()),
            };
            if let Err(error) = again {
                tracing::error!("[sandbox] {} is not restored: {error}", path.display());
            }
            undone.push(path.display().to_string());
        }
        (!undone.is_empty()).then(|| {
            format!(
                "Commands must not change {}: what was there is back, and what the command made of it is renamed to NAME{SUFFIX}-*. The user can, \
                 by letting the command run outside of the sandbox when asked.",
                listed(undone)
            )
        })
    }
}

/// Returns the path with the links in its parent folders resolved.
fn real(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|it| it.canonicalize().ok());
    match (above, path.file_name()) {
        (Some(above), Some(name)) => above.join(name),
        _ => path.to_path_buf(),
    }
}

/// Returns the nearest writable folder above it.
fn base<'o>(open: &'o [PathBuf], path: &Path) -> Option<&'o Path> {
    let around = open.iter().filter(|it| path.starts_with(it) && path != *it);
    around
        .max_by_key(|it| it.components().count())
        .map(PathBuf::as_path)
}

/// Returns the contents in and below a file or folder.
fn files(path: &Path) -> Before {
    let mut found = Before::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        let is_aside = path.to_string_lossy().contains(SUFFIX);
        if meta.is_dir() {
            let entries = fs::read_dir(&path)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|it| !LARGE.iter().any(|name| it.file_name() == *name));
            waiting.extend(entries.map(|it| it.path()));
        } else if !is_aside && found.len() < MAX_FILES {
            let content = Content::of(&path, &meta);
            found.insert(path, content);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn listing(root: &Path) -> Vec<String> {
        let found = files(root).into_iter();
        let name = |path: PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        found
            .map(|(path, content)| match content {
                Content::File { bytes, .. } => {
                    format!("{}={}", name(path), String::from_utf8_lossy(&bytes))
                }
                Content::Link(to) => format!("{} -> {}", name(path), to.display()),
                Content::Other(..) => format!("{} is large", name(path)),
            })
            .collect()
    }

    #[test]
    fn what_a_command_changed_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let large = "x".repeat(300 * 1024);
        write(
            &root,
            &[
                ("git/config", "mine"),
                ("git/hooks/pre-push", "mine"),
                ("git/hooks/deep/x", "mine"),
                ("hooks/post-merge", "mine"),
                (".envrc", "mine"),
                ("settings", "same"),
                ("elsewhere/x", "other"),
                ("program", &large),
            ],
        );
        std::os::unix::fs::symlink("settings", root.join("link")).unwrap();
        let names = [
            "git/config",
            "git/hooks",
            "hooks",
            ".envrc",
            "settings",
            "link",
            "program",
        ];
        let policy = Policy {
            read_only: names.iter().map(|it| root.join(it)).collect(),
            ..Policy::default().write(&root)
        };
        let restored = Restored::of(&policy, &root);
        assert!(!restored.fixed.contains(&root.join("program")));
        assert_eq!(restored.undo(), None);
        let before = listing(&root);
        // Written, removed, created, replaced by a folder or a link.
        write(
            &root,
            &[
                ("git/config", "evil"),
                ("git/hooks/post-commit", "evil"),
                ("elsewhere/x", "changed"),
            ],
        );
        fs::remove_dir_all(root.join("git/hooks/deep")).unwrap();
        fs::remove_file(root.join(".envrc")).unwrap();
        write(&root, &[(".envrc/x", "evil")]);
        fs::remove_dir_all(root.join("hooks")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.join("hooks")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        std::os::unix::fs::symlink("elsewhere/x", root.join("link")).unwrap();
        let undone = restored.undo().unwrap();
        insta::assert_snapshot!(undone.replace(&root.display().to_string(), "ROOT"));
        let after: Vec<String> = listing(&root);
        let changed = |it: &String| it.replace("=other", "=changed");
        assert_eq!(after, before.iter().map(changed).collect::<Vec<_>>());
        assert_eq!(restored.undo(), None);
    }

    #[test]
    fn what_one_command_made_was_not_there_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, &[("git/config", "mine")]);
        let policy = Policy {
            read_only: vec![root.join("git/config")],
            ..Policy::default().write(&root)
        };
        let first = Restored::of(&policy, &root);
        write(&root, &[("git/config", "evil")]);
        let second = Restored::of(&policy, &root);
        assert!(first.undo().is_some());
        drop(first);
        write(&root, &[("git/config", "evil")]);
        assert!(second.undo().is_some());
        assert_eq!(listing(&root), ["git/config=mine"]);
    }
}
