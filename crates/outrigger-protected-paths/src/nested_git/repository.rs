//! A repository below a project: where it is, and what of it says what it runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outrigger_sandbox::absent::SUFFIX;

use crate::git_files::is_repository;

/// Files of a repository that say what runs, but for hooks.
pub(super) const SETTINGS: [&str; 2] = ["config", "config.worktree"];

/// A file, whatever it holds: device, number and time of its last change, which no process can set.
pub(super) type Stamp = (u64, u64, i64, i64);

/// What a repository had that says what runs, by path.
pub(super) type Stamps = Vec<(PathBuf, Option<Stamp>)>;

/// A repository below the project.
pub(super) struct Repository {
    /// Its folder, relative to the project's root.
    pub(super) folder: PathBuf,
    /// `.git` in it; the folder itself where it is a repository without a work tree.
    pub(super) entry: PathBuf,
    /// Where that leads: its own folder, and the one whose settings it has.
    pub(super) stores: BTreeSet<PathBuf>,
}

pub(super) fn repository_in(worktree: &Path, folder: PathBuf) -> Option<Repository> {
    let whole = worktree.join(&folder);
    let mut entry = whole.join(".git");
    // The project's own folder is looked at elsewhere.
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
        let common = outrigger_files::read_to_string(&own.join("commondir"), 4096);
        let common = common
            .ok()
            .and_then(|it| own.join(it.trim()).canonicalize().ok());
        stores.extend(common);
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
    /// It has no work tree: what lies in it is git's.
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
        // A folder changes with all that is done in it.
        let of = |path: PathBuf| {
            let meta = fs::symlink_metadata(&path).ok();
            let stamp = meta.map(|it| match it.is_dir() {
                true => (it.dev(), it.ino(), 0, 0),
                false => (it.dev(), it.ino(), it.ctime(), it.ctime_nsec()),
            });
            (path, stamp)
        };
        paths.into_iter().map(of).collect()
    }
}

/// Where a `.git` has its repository: it is a folder, a file that names one, or a link.
pub(crate) fn store(entry: &Path) -> Option<PathBuf> {
    if entry.is_dir() {
        return entry.canonicalize().ok();
    }
    let text = outrigger_files::read_to_string(entry, 4096).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let git = entry.parent()?.join(named).canonicalize().ok()?;
    is_repository(&git).then_some(git)
}

/// What git would run of a folder of hooks, or the folder, where it is a link.
pub(super) fn active_hooks(git: &Path) -> Vec<PathBuf> {
    let hooks = git.join("hooks");
    if hooks.is_symlink() {
        return vec![hooks];
    }
    let entries = fs::read_dir(&hooks).into_iter().flatten().flatten();
    let names = entries.map(|it| it.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.ends_with(".sample") && !name.contains(SUFFIX) && !path.is_dir()
    });
    names.collect()
}
