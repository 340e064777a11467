//! Nested files that make something run later (`packages/app/.vscode/tasks.json`): a command can create and change none. They are
//! not masked while it runs, since it could not move or remove their folders then. At its end, files that are neither unchanged
//! nor copies of existing ones are renamed, and previous ones restored.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use outrigger_protocol::startup::{GIT, STARTUP, startup_file};
use outrigger_sandbox::absent::{FolderEntry, SUFFIX};

use crate::content::{Before, Content, listed};
use crate::nested_git::startup_below;
use crate::running::{First, Running};

/// Maximum number of package files in a folder that makes something run later (`.opencode/node_modules`).
const MAX_FILES: usize = 200;
/// Maximum number of package folders in it.
const MAX_FOLDERS: usize = 20;
/// Maximum number of files and folders in all folders that make something run later.
const MAX_NAMES: usize = 100_000;

/// State of running commands: the files of each project when the first of them started, by path relative to the root.
static RUNNING: Running = Running::new("startup");

/// The files before a command.
#[derive(Debug)]
pub(crate) struct NestedStartup {
    worktree: PathBuf,
    before: Arc<First>,
    /// All of them were checked.
    is_whole: bool,
    /// Existing files, including the root's: by path relative to the folder that they apply to. Copies of these are harmless.
    known: BTreeSet<(PathBuf, Content)>,
}

/// Returns whether a file or folder of this name is one of them, or may contain one. Repositories are checked elsewhere.
pub(crate) fn is_candidate(name: &OsStr) -> bool {
    // Called for every name in a project.
    static FIRSTS: LazyLock<HashSet<Vec<u8>>> = LazyLock::new(|| {
        STARTUP
            .iter()
            .filter_map(|it| it.path.split('/').next())
            .filter(|it| *it != GIT)
            .map(|it| it.to_ascii_lowercase().into_bytes())
            .collect()
    });
    FIRSTS.contains(&name.as_bytes().to_ascii_lowercase()) || is_workspace(name)
}

/// Returns whether it is an editor's workspace file, with tasks and settings, which may have any name.
pub(crate) fn is_workspace(name: &OsStr) -> bool {
    const ENDING: &[u8] = b".code-workspace";
    let name = name.as_bytes();
    name.len()
        .checked_sub(ENDING.len())
        .and_then(|at| name.get(at..))
        .is_some_and(|it| it.eq_ignore_ascii_case(ENDING))
}

/// Returns whether a link replaces a folder that contains some.
fn is_folder_of(path: &Path) -> bool {
    STARTUP.iter().any(|it| {
        let mut listed = it.path.split('/');
        let mut parts = path.components();
        parts.all(|part| {
            listed
                .next()
                .is_some_and(|it| part.as_os_str().eq_ignore_ascii_case(it))
        })
    })
}

impl NestedStartup {
    /// Returns the current state; `names` are the candidates below the root, by relative path. Blocking.
    pub(crate) fn before(worktree: &Path, names: &[PathBuf]) -> Self {
        let (before, is_whole) = files(worktree, names);
        Self {
            worktree: worktree.to_owned(),
            before: Arc::new(before.into()),
            is_whole,
            known: BTreeSet::new(),
        }
    }

    /// Returns whether all of them were checked.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Prepares it for a command: files created by another running one did not exist before. Blocking.
    pub(crate) fn for_command(mut self) -> Self {
        let now = Before::clone(&self.before);
        self.before = RUNNING.first(&self.worktree, now);
        let of_root: Vec<PathBuf> = fs::read_dir(&self.worktree)
            .into_iter()
            .flatten()
            .flatten()
            .map(|it| PathBuf::from(it.file_name()))
            .filter(|it| is_candidate(it.as_os_str()))
            .collect();
        let (all, _) = files(&self.worktree, &of_root);
        let known = self
            .before
            .iter()
            .chain(&all)
            .map(|(path, content)| (counted(path), content.clone()));
        self.known = known.collect();
        self
    }

    /// Returns the existing files, and links in place of folders with some in them.
    pub(crate) fn there(&self) -> impl Iterator<Item = PathBuf> {
        self.before.keys().map(|it| self.worktree.join(it))
    }

    /// Undoes the changes of a command that has ended, and returns a description, and whether all files were checked. Blocking.
    pub(crate) fn clear(&self, names: &[PathBuf]) -> (Option<String>, bool) {
        let mut undone = Vec::new();
        let (now, is_whole) = files(&self.worktree, names);
        for (path, content) in now {
            let before = self.before.get(&path);
            // The root's files were read-only, and the user may have changed them meanwhile.
            let is_of_root = path.parent() == Some(Path::new(""));
            if before.is_some() && is_of_root
                || before == Some(&content)
                || self.known.contains(&(counted(&path), content))
            {
                continue;
            }
            let whole = self.worktree.join(&path);
            let Some(place) = FolderEntry::of(&self.worktree, &whole) else {
                continue;
            };
            if place.move_aside().is_none() {
                tracing::error!("[sandbox] cannot rename {}: remove it", whole.display());
                continue;
            }
            if let Some(Content::File { bytes, mode }) = before
                && let Err(error) = place.write_new(bytes, *mode)
            {
                tracing::warn!("[sandbox] {} is not restored: {error}", whole.display());
            }
            undone.push(path.display().to_string());
        }
        let said = (!undone.is_empty()).then(|| {
            format!(
                "Commands must not make or change files that make something run later: {} (renamed to NAME{SUFFIX}-*; what was there is back). The user \
                 can, by letting the command run outside of the sandbox when asked.",
                listed(undone)
            )
        });
        (said, is_whole)
    }
}

/// Returns the listed files in folders below a root, by path relative to the folder that they apply to and by full path.
/// Blocking.
pub(crate) fn below(root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let (found, _) = listed_in(root, &startup_below(root));
    found
        .into_iter()
        .map(|(it, _)| (counted(&it), root.join(it)))
        .collect()
}

fn is_listed(path: &Path) -> bool {
    startup_file(path).is_some()
}

/// Returns the path relative to the folder that a file applies to: `.vscode/tasks.json` of `packages/app/.vscode/tasks.json`.
fn counted(path: &Path) -> PathBuf {
    let mut parts = path.components();
    while let Some(first) = parts.clone().next() {
        if is_candidate(first.as_os_str()) {
            break;
        }
        parts.next();
    }
    parts.as_path().to_owned()
}

/// Returns the listed files in and below these, and whether all of them were checked.
fn files(worktree: &Path, names: &[PathBuf]) -> (BTreeMap<PathBuf, Content>, bool) {
    let (found, is_whole) = listed_in(worktree, names);
    let found = found.into_iter().map(|(path, meta)| {
        let content = Content::of(&worktree.join(&path), &meta);
        (path, content)
    });
    (found.collect(), is_whole)
}

/// Like [`files`], without their contents.
fn listed_in(worktree: &Path, names: &[PathBuf]) -> (Vec<(PathBuf, fs::Metadata)>, bool) {
    let mut found = Vec::new();
    let mut seen = 0;
    for name in names {
        let mut waiting = vec![name.clone()];
        let (mut files, mut folders) = (0, 0);
        while let Some(path) = waiting.pop() {
            seen += 1;
            if seen > MAX_NAMES {
                return (found, false);
            }
            let whole = worktree.join(&path);
            let Ok(meta) = fs::symlink_metadata(&whole) else {
                continue;
            };
            let is_package = path.iter().any(|it| it == "node_modules");
            if meta.is_dir() {
                folders += usize::from(is_package);
                let entries = fs::read_dir(&whole)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|it| path.join(it.file_name()));
                match is_package {
                    true if folders <= MAX_FOLDERS => waiting.extend(entries.take(MAX_FILES)),
                    true => {}
                    false => waiting.extend(entries.take(MAX_NAMES)),
                }
                continue;
            }
            let is_aside = path.to_string_lossy().contains(SUFFIX);
            let counts = counted(&path);
            if is_aside || !(is_listed(&counts) || meta.is_symlink() && is_folder_of(&counts)) {
                continue;
            }
            files += usize::from(is_package);
            if files <= MAX_FILES {
                found.push((path, meta));
            }
        }
    }
    (found, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested_git::NestedGit;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn listing(root: &Path) -> Vec<String> {
        let mut all = Vec::new();
        let mut waiting = vec![root.to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    waiting.push(path);
                } else {
                    let name = path
                        .strip_prefix(root)
                        .unwrap()
                        .display()
                        .to_string()
                        .split("-aside-")
                        .next()
                        .unwrap()
                        .to_owned();
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    all.push(format!("{name}={text}"));
                }
            }
        }
        all.sort();
        all
    }

    #[test]
    fn what_a_command_leaves_below_the_root_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(
            &root,
            &[
                (".vscode/tasks.json", "root"),
                (".claude/settings.json", "root"),
                ("packages/app/.vscode/tasks.json", "app"),
                ("packages/old/.vscode/settings.json", "old"),
                ("packages/gone/.envrc", "gone"),
                ("mine.code-workspace", "mine"),
                ("deep/a/b/c/d/.vscode/tasks.json", "deep"),
                (".zed/keymap.json", "text"),
            ],
        );
        let nested = NestedGit::before(&root).for_command();
        // A worktree's copy, a folder that is moved, one that is removed, and other files: unchanged.
        fs::rename(root.join("packages/old"), root.join("packages/new")).unwrap();
        fs::remove_dir_all(root.join("packages/gone")).unwrap();
        write(
            &root,
            &[
                (".worktrees/x/.vscode/tasks.json", "root"),
                (".worktrees/x/.claude/settings.json", "root"),
                ("packages/app/.vscode/extensions.json", "text"),
                ("packages/app/.claude/plans/a.md", "text"),
                // Changed ones.
                ("packages/app/.vscode/tasks.json", "evil"),
                ("packages/new/.vscode/tasks.json", "evil"),
                ("packages/app/.claude/settings.json", "evil"),
                ("packages/app/.Husky/pre-commit", "evil"),
                ("packages/app/opencode.json", "evil"),
                ("deep/a/b/c/d/.vscode/tasks.json", "evil"),
                ("deep/a/b/c/d/.envrc", "evil"),
                ("packages/x.code-workspace", "evil"),
                // The text of another file on the list.
                ("packages/app/.envrc", "root"),
                ("new.code-workspace", "evil"),
                ("elsewhere/tasks.json", "evil"),
                // The user's change, meanwhile.
                ("mine.code-workspace", "changed"),
            ],
        );
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link("../elsewhere", "packages/.vscode");
        fs::rename(root.join(".zed"), root.join("zed")).unwrap();
        link("elsewhere", ".zed");
        std::os::unix::fs::symlink("/nowhere", root.join("packages/app/.mcp.json")).unwrap();
        assert!(nested.clear(false).is_empty());
        let said = nested.clear(true);
        insta::assert_snapshot!(format!(
            "{}\n\n{}",
            said.join("\n"),
            listing(&root).join("\n")
        ));
        assert!(nested.clear(true).is_empty());
    }

    #[test]
    fn nothing_hides_behind_many_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let deep = (0..12)
            .map(|it| it.to_string())
            .collect::<Vec<_>>()
            .join("/");
        let deep = format!("{deep}/.vscode/tasks.json");
        let [wide, beside] = [
            "packages/app/.vscode/tasks.json",
            "packages/b/.vscode/tasks.json",
        ];
        write(&root, &[(wide, "mine"), (&deep, "mine")]);
        for number in 0..4100 {
            fs::create_dir_all(root.join(format!("a/{number}"))).unwrap();
        }
        let nested = NestedGit::before(&root).for_command();
        for number in 0..250 {
            write(&root, &[(&format!("packages/b/.vscode/{number}"), "")]);
        }
        write(&root, &[(wide, "evil"), (&deep, "evil"), (beside, "evil")]);
        assert_eq!(nested.clear(true).len(), 1);
        for name in [wide, &deep] {
            assert_eq!(
                fs::read_to_string(root.join(name)).unwrap(),
                "mine",
                "{name}"
            );
        }
        assert!(!root.join(beside).exists());
    }

    #[test]
    fn what_one_command_made_was_not_there_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = root.join("packages/app/.vscode/tasks.json");
        write(&root, &[("packages/app/.vscode/tasks.json", "mine")]);
        // A plugin's process runs as long as this program, and is not evidence of what the user did since it started.
        let _plugin = NestedGit::before(&root);
        fs::write(&file, "mine since").unwrap();
        let first = NestedGit::before(&root).for_command();
        fs::write(&file, "evil").unwrap();
        let second = NestedGit::before(&root).for_command();
        assert_eq!(first.clear(true).len(), 1);
        drop(first);
        fs::write(&file, "evil too").unwrap();
        assert_eq!(second.clear(true).len(), 1);
        assert_eq!(fs::read_to_string(file).unwrap(), "mine since");
    }
}
