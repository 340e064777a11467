//! A repository below a project: its location, and the files that determine what it runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outrigger_sandbox::absent::SUFFIX;

use crate::git_files::is_repository;

/// Files of a repository that determine what runs, except hooks.
pub(super) const SETTINGS: [&str; 2] = ["config", "config.worktree"];

/// Identity of a file's state: device, inode and time of its last change, which no process can set.
pub(super) type Stamp = (u64, u64, i64, i64);

/// State of the files that determine what a repository runs, by path.
pub(super) type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// A repository below the project.
pub(super) struct Repository {
    /// Its folder, relative to the project's root.
    pub(super) folder: PathBuf,
    /// Its `.git`; for a bare repository the folder itself.
    pub(super) entry: PathBuf,
    /// Targets: its own folder, and the one whose settings it has.
    pub(super) stores: BTreeSet<PathBuf>,
}

pub(super) fn repository_in(worktree: &Path, folder: PathBuf) -> Option<Repository> {
    let whole = worktree.join(&folder);
    let mut entry = whole.join(".git");
    // The project's own folder is checked elsewhere.
    let is_bare = folder.components().next().is_some() && is_repository(&whole);
    if fs::symlink_metadata(&entry).is_err() {
        if !is_bare {
            return None;
        }
        entry.clone_from(&whole);
    }
    // git does not follow links on the way to a repository either.
    if whole.canonicalize().ok()? != whole {
        return None;
    }
    let mut stores = BTreeSet::new();
    if let Some(own) = store(&entry) {
        stores.extend(common(&own));
        stores.insert(own);
    }
    if is_bare {
        stores.insert(whole);
    }
    Some(Repository {
        folder,
        entry,
        stores,
    })
}

impl Repository {
    /// Returns whether it is bare: everything in it belongs to git.
    pub(super) fn is_bare(&self) -> bool {
        self.entry.ends_with(&self.folder)
    }

    pub(super) fn stamps(&self) -> Stamps {
        let mut paths = vec![self.entry.clone()];
        for git in &self.stores {
            paths.extend(SETTINGS.iter().map(|name| git.join(name)));
            paths.push(git.join("commondir"));
            paths.push(git.join("hooks"));
            paths.extend(active_hooks(git));
        }
        // A folder changes with every operation in it.
        let of = |path: PathBuf| {
            let meta = fs::symlink_metadata(&path).ok();
            let stamp = meta.map(|it| {
                if it.is_dir() {
                    (it.dev(), it.ino(), 0, 0)
                } else {
                    (it.dev(), it.ino(), it.ctime(), it.ctime_nsec())
                }
            });
            (path, stamp)
        };
        paths.into_iter().map(of).collect()
    }
}

/// Returns the repository of a `.git`: a folder, a file that names one, or a link.
pub(crate) fn store(entry: &Path) -> Option<PathBuf> {
    if entry.is_dir() {
        return entry.canonicalize().ok();
    }
    let text = outrigger_files::read_to_string(entry, 4096).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let git = entry.parent()?.join(named).canonicalize().ok()?;
    is_repository(&git).then_some(git)
}

/// Where the settings of a repository are, if it says that they are elsewhere.
pub(super) fn common(git: &Path) -> Option<PathBuf> {
    let named = outrigger_files::read_to_string(&git.join("commondir"), 4096).ok()?;
    git.join(named.trim()).canonicalize().ok()
}

/// What git would run of a folder of hooks, or the folder, where it is a link.
pub(super) fn active_hooks(git: &Path) -> Vec<PathBuf> {
    let hooks = git.join("hooks");
    if hooks.is_symlink() {
        return vec![hooks];
    }
    fs::read_dir(&hooks)
        .into_iter()
        .flatten()
        .flatten()
        .map(|it| it.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.ends_with(".sample") && !name.contains(SUFFIX) && !path.is_dir()
        })
        .collect()
}
