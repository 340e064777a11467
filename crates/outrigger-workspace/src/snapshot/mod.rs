//! Snapshots of the project's files, kept in our own git object store outside the project.
//!
//! The store is in the data folder and borrows the objects of the project's repository, so the first snapshot of a
//! large project costs little. The project's own repository, including its index, is never written to. Ignored files,
//! and new files of more than 2 MiB, are in no snapshot, as in OpenCode. Bytes are stored unmodified: without filters
//! and line end conversion.

mod diff;
mod git;
mod object_store;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use outrigger_sandbox::{Anchor, Spawner};

use crate::project_location::ProjectLocation;
use outrigger_stdx::sync::lock;

pub use diff::FileDiff;

/// Maximum bytes of a file that is added for the first time.
const MAX_NEW_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The store's folder cannot be used.
    #[error("cannot use {path}: {reason}")]
    Folder {
        /// The folder.
        path: String,
        /// The reason.
        reason: String,
    },
    /// Git cannot be started, or did not end.
    #[error("cannot run git: {0}")]
    Run(String),
    /// Git failed.
    #[error("git {what} failed: {reason}")]
    Git {
        /// Its subcommand.
        what: String,
        /// Its output.
        reason: String,
    },
    /// A file outside the project.
    #[error("{0} is not in the project")]
    Outside(String),
    /// A file that a link leads to: no snapshot has one.
    #[error("{0} is not restored: a link leads there")]
    Link(String),
    /// A name that is not one of a tree.
    #[error("`{0}` is not the name of a snapshot")]
    Tree(String),
}

/// Returns whether a text is the name of a tree, and so no option or expression of git.
#[must_use]
pub fn is_tree(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn checked(name: &str) -> Result<(), SnapshotError> {
    if is_tree(name) {
        Ok(())
    } else {
        Err(SnapshotError::Tree(name.to_owned()))
    }
}

/// Returns whether a file of the project, by its absolute path, is hidden from processes, and so in no snapshot. Reads
/// the disk.
pub type WithheldFn = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The state of the index from which a tree was written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IndexState {
    index: (SystemTime, u64),
    tree: String,
}

/// The store of one project folder.
pub struct Snapshots {
    spawner: Spawner,
    /// The git program; `None` if there are no snapshots (no git project, no git, or disabled).
    git: Option<PathBuf>,
    location: ProjectLocation,
    /// The files excluded from snapshots. `None`: git is not sandboxed.
    withheld: Option<WithheldFn>,
    store: PathBuf,
    /// One at a time within this process; a lock file excludes other processes.
    order: tokio::sync::Mutex<()>,
    known: Mutex<Option<IndexState>>,
}

impl Snapshots {
    /// Creates the store of this project under the data folder. Writes nothing before the first snapshot.
    pub fn new(
        location: &ProjectLocation,
        project: &str,
        data: &Path,
        spawner: &Spawner,
        wanted: bool,
        withheld: Option<WithheldFn>,
    ) -> Self {
        let worktree = location.worktree.display().to_string();
        let name = outrigger_kernel::digest::fnv1a(worktree.as_bytes());
        Self {
            spawner: spawner.clone(),
            git: (wanted && location.git).then(git::program).flatten(),
            location: location.clone(),
            withheld,
            store: data
                .join("snapshot")
                .join(project)
                .join(format!("{name:016x}")),
            order: tokio::sync::Mutex::new(()),
            known: Mutex::default(),
        }
    }

    /// Returns whether snapshots are possible here.
    pub fn is_on(&self) -> bool {
        self.git.is_some()
    }

    /// Returns the absolute path of a file in a snapshot.
    pub fn absolute(&self, file: &str) -> PathBuf {
        self.location.worktree.join(file)
    }

    /// Returns the path of a file within snapshots. Reads the disk.
    ///
    /// # Errors
    /// [`SnapshotError::Outside`], [`SnapshotError::Link`].
    pub fn relative(&self, file: &str) -> Result<String, SnapshotError> {
        let outside = || SnapshotError::Outside(file.to_owned());
        let inner = outrigger_sandbox::paths::resolve(&self.location.worktree, Path::new(file));
        let relative = inner
            .strip_prefix(&self.location.worktree)
            .map_err(|_| outside())?;
        let text = relative.to_str().ok_or_else(outside)?;
        let of_git = |part: &str| part.eq_ignore_ascii_case(".git");
        if text.is_empty() || text.split('/').any(of_git) || text.contains('\n') {
            return Err(outside());
        }
        match self.folder_of(text) {
            Err(error @ SnapshotError::Link(_)) => Err(error),
            _ => Ok(text.to_owned()),
        }
    }

    /// Opens the folder of a file, without following a link: git records what a link is, not what is behind it. `None`: it is
    /// gone.
    fn folder_of(&self, file: &str) -> Result<Option<Anchor>, SnapshotError> {
        let failed = |error: std::io::Error| SnapshotError::Folder {
            path: self.absolute(file).display().to_string(),
            reason: error.to_string(),
        };
        let root = self.location.worktree.canonicalize().map_err(failed)?;
        let path = root.join(file);
        match Anchor::hold(path.parent().unwrap_or(&root)) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                Err(SnapshotError::Link(file.to_owned()))
            }
            // A file in the place of a folder is none of ours either.
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Takes a snapshot of the current files.
    ///
    /// # Errors
    /// Those of git and of the store's folder.
    pub async fn track(&self) -> Result<String, SnapshotError> {
        let _order = self.order.lock().await;
        let _lock = object_store::prepare(&self.store, &self.location.worktree).await?;
        self.tree().await
    }

    /// Like [`Self::track`], with the lock held.
    async fn tree(&self) -> Result<String, SnapshotError> {
        let added = self.refresh().await?;
        let index = object_store::stamp(&self.store.join("index"));
        let known = lock(&self.known).clone();
        if let Some(known) = known.filter(|known| !added && Some(known.index) == index) {
            return Ok(known.tree);
        }
        let tree = self.text(&["write-tree"], None).await?;
        if let Some(index) = object_store::stamp(&self.store.join("index")) {
            *lock(&self.known) = Some(IndexState {
                index,
                tree: tree.clone(),
            });
        }
        Ok(tree)
    }

    /// Updates the index from the files; returns whether anything changed.
    async fn refresh(&self) -> Result<bool, SnapshotError> {
        let listed = self
            .git_in(
                &self.location.directory,
                &[
                    "ls-files",
                    "-z",
                    "-t",
                    "--full-name",
                    "--modified",
                    "--deleted",
                    "--others",
                    "--exclude-standard",
                    "--",
                    ".",
                ],
                None,
            )
            .await?;
        let (worktree, withheld) = (self.location.worktree.clone(), self.withheld.clone());
        let chosen = move || chosen(&listed, &worktree, withheld.as_ref());
        let names = tokio::task::spawn_blocking(chosen).await;
        let names = names.map_err(|error| SnapshotError::Run(error.to_string()))?;
        if names.is_empty() {
            return Ok(false);
        }
        let update = [
            "update-index",
            "--add",
            "--remove",
            "--replace",
            "-z",
            "--stdin",
        ];
        if let Err(error) = self.git(&update, Some(names.clone())).await {
            // An unreadable file must not exclude the others.
            tracing::debug!("[snapshot] {error}");
            let add = [
                "add",
                "--all",
                "--ignore-errors",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
            ];
            let _ = self.git(&add, Some(names)).await;
        }
        Ok(true)
    }

    /// Returns the object of each file in each snapshot; missing ones are skipped.
    ///
    /// # Errors
    /// Those of git, and [`SnapshotError::Tree`].
    pub async fn objects(
        &self,
        wanted: &[(String, String)],
    ) -> Result<HashMap<(String, String), String>, SnapshotError> {
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let mut input = String::new();
        for (tree, file) in wanted {
            checked(tree)?;
            input.push_str(&format!("{tree}:{file}\n"));
        }
        let check = ["cat-file", "--batch-check=%(objectname)"];
        let out = self.git(&check, Some(input.into_bytes())).await?;
        let out = String::from_utf8_lossy(&out).into_owned();
        Ok(wanted
            .iter()
            .cloned()
            .zip(out.lines())
            .filter(|(_, line)| !line.ends_with(" missing"))
            .map(|(pair, line)| (pair, line.to_owned()))
            .collect())
    }

    /// Restores files from a snapshot; those that are not in it are deleted.
    ///
    /// # Errors
    /// Those of git, of the files, [`SnapshotError::Tree`] and [`SnapshotError::Link`].
    pub async fn restore(&self, tree: &str, files: &[String]) -> Result<(), SnapshotError> {
        let wanted: Vec<(String, String)> = files
            .iter()
            .map(|file| (tree.to_owned(), file.clone()))
            .collect();
        checked(tree)?;
        let there = self.objects(&wanted).await?;
        // Of files that a command reads which the user let run outside of its sandbox, none is changed meanwhile.
        let _changes = self.spawner.change_files().await;
        let _order = self.order.lock().await;
        let _lock = object_store::prepare(&self.store, &self.location.worktree).await?;
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for pair in wanted {
            if there.contains_key(&pair) {
                kept.extend_from_slice(pair.1.as_bytes());
                kept.push(0);
            } else {
                gone.push(pair.1);
            }
        }
        if !kept.is_empty() {
            let checkout = [
                "checkout",
                "--quiet",
                "--no-overlay",
                tree,
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
            ];
            self.git(&checkout, Some(kept)).await?;
        }
        for file in gone {
            self.delete(&file)?;
        }
        Ok(())
    }

    fn delete(&self, file: &str) -> Result<(), SnapshotError> {
        let path = self.absolute(file);
        let Some(folder) = self.folder_of(file)? else {
            return Ok(());
        };
        let removed = folder.remove(path.file_name().unwrap_or_default());
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SnapshotError::Folder {
                    path: path.display().to_string(),
                    reason: error.to_string(),
                })
            }
            _ => Ok(()),
        }
    }
}

/// Selects the names from `ls-files -t -z` that belong in a snapshot, each terminated by a zero byte. Reads the disk.
fn chosen(listed: &[u8], worktree: &Path, withheld: Option<&WithheldFn>) -> Vec<u8> {
    let mut names = Vec::new();
    for entry in listed.split(|byte| *byte == 0) {
        let (Some(tag), Some(name)) = (entry.first(), entry.get(2..)) else {
            continue;
        };
        let path = worktree.join(OsStr::from_bytes(name));
        let unfit = *tag == b'?' && is_unfit(&path);
        // A diff would show what is withheld.
        let withheld = withheld.is_some_and(|it| it(&path));
        // A repository within the project is a folder here, and not included.
        if name.ends_with(b"/") || unfit || withheld {
            continue;
        }
        names.extend_from_slice(name);
        names.push(0);
    }
    names
}

/// Returns whether a new file is too large, or not a file.
fn is_unfit(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or(true, |found| {
        let kind = found.file_type();
        !(kind.is_symlink() || kind.is_file() && found.len() <= MAX_NEW_FILE_BYTES)
    })
}
