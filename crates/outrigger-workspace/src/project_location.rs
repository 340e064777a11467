//! The project of a folder.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_protocol::session::Project;
use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::{Spawner, Spec};
use outrigger_stdx::sync::lock;
use outrigger_store::Store;

use crate::git_policy;

/// A folder and its project.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectLocation {
    /// The agent's working directory, absolute and without links.
    pub directory: PathBuf,
    /// Root of the version-controlled folder, otherwise `directory`.
    pub worktree: PathBuf,
    /// The project is under git.
    pub git: bool,
}

impl ProjectLocation {
    /// Searches upwards for a `.git` folder or file. One created by another user of the machine is skipped.
    #[must_use]
    pub fn find(directory: &Path) -> Self {
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_path_buf());
        let root = directory
            .ancestors()
            .find(|dir| {
                let git = dir.join(".git");
                git.exists() && is_by_known_user(&git, &directory)
            })
            .map(Path::to_path_buf);
        let git = root.is_some();
        Self {
            worktree: root.unwrap_or_else(|| directory.clone()),
            directory,
            git,
        }
    }

    /// Returns the working directory relative to the project's root; empty if it is the root.
    #[must_use]
    pub fn relative(&self) -> String {
        self.directory
            .strip_prefix(&self.worktree)
            .unwrap_or(Path::new(""))
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the project record. Its identifier is the repository's first commit, so that clones share it, as in OpenCode; `global`
    /// without git or without a commit. Git runs in a sandbox that gives it access to this repository, with the user's files in
    /// `home`; without `home` it is not sandboxed.
    pub async fn project(
        &self,
        spawner: &Spawner,
        store: &Store,
        home: Option<&Path>,
        now: u64,
    ) -> Project {
        let id = if self.git {
            self.known_commit(spawner, store, home).await
        } else {
            None
        };
        Project {
            id: id.unwrap_or_else(|| "global".into()),
            worktree: self.worktree.to_string_lossy().into_owned(),
            vcs: self.git.then(|| "git".into()),
            time: serde_json::json!({ "created": now, "updated": now }),
            ..Project::default()
        }
    }

    /// The first commit never changes, so git is called once per folder.
    async fn known_commit(
        &self,
        spawner: &Spawner,
        store: &Store,
        home: Option<&Path>,
    ) -> Option<String> {
        let key = format!("project:{}", self.worktree.display());
        if let Ok(Some(id)) = store.meta_get(&key) {
            return Some(id);
        }
        let id = self.first_commit(spawner, home).await?;
        if let Err(error) = store.meta_set(&key, Some(&id)).await {
            tracing::warn!("[store] {error}");
        }
        Some(id)
    }

    async fn first_commit(&self, spawner: &Spawner, home: Option<&Path>) -> Option<String> {
        if let Some(why) = git_policy::unfit(&self.worktree) {
            tracing::warn!("[git] {why}");
            return None;
        }
        let env = outrigger_sandbox::env::of_host(&[]);
        let path = env
            .iter()
            .find(|(key, _)| key == "PATH")
            .map(|(_, value)| value.clone());
        let git = outrigger_sandbox::host_path::which_of_host("git", path?)?;
        let mut spec = Spec::new(git)
            .args(["rev-list", "--max-parents=0", "HEAD"])
            .cwd(&self.worktree)
            .vars(env)
            .vars(git_policy::NO_PROGRAMS);
        if let Some(home) = home {
            spec = spec.var("HOME", home).vars(git_policy::variables(home));
            spec.policy = Some(git_policy::policy(
                self,
                home,
                CoverWalk::default(),
                "rev-list",
            ));
        }
        let output = outrigger_sandbox::run(spawner, spec, std::time::Duration::from_secs(5), 4096)
            .await
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut commits: Vec<&str> = text
            .split_whitespace()
            .filter(|word| word.len() == 40)
            .collect();
        commits.sort_unstable();
        commits.first().map(|id| (*id).to_string())
    }
}

/// Returns whether a `.git` was created by a user who may define the project: root, this user (under `sudo` the one who called it, as
/// in git), or the owner of the working directory, who controls it anyway. In a shared folder (`/tmp`) everyone can create one. A
/// refusal is reported once.
fn is_by_known_user(git: &Path, directory: &Path) -> bool {
    static REPORTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let sudo = std::env::var("SUDO_UID")
        .ok()
        .and_then(|it| it.parse().ok());
    let known = TrustedOwners {
        user: rustix::process::geteuid().as_raw(),
        sudo,
        of_folder: directory.metadata().map(|it| it.uid()).ok(),
    };
    // A link belongs to its creator, and its target has an owner as well.
    let all = [git.symlink_metadata(), git.metadata()];
    let owners = all.iter().flatten().map(Metadata::uid);
    let Some(owner) = owners.into_iter().find(|owner| !known.has(*owner)) else {
        return true;
    };
    let mut reported = lock(&REPORTED);
    if reported.insert(git.to_owned()) {
        tracing::warn!(
            "[git] {} is passed over: it belongs to another user ({owner})",
            git.display()
        );
    }
    false
}

/// Users whose `.git` is accepted.
#[derive(Clone, Copy, Debug)]
struct TrustedOwners {
    user: u32,
    /// The user who called `sudo`.
    sudo: Option<u32>,
    of_folder: Option<u32>,
}

impl TrustedOwners {
    fn has(self, owner: u32) -> bool {
        let is_root = self.user == 0;
        owner == 0
            || owner == self.user
            || is_root && self.sudo == Some(owner)
            || self.of_folder == Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_folder_of_another_user_makes_no_project() {
        let known = |user, sudo, of_folder| TrustedOwners {
            user,
            sudo,
            of_folder,
        };
        for (known, owner, counts) in [
            (known(1000, None, Some(1000)), 1000, true),
            (known(1000, None, Some(1000)), 0, true),
            (known(1000, None, Some(1000)), 1001, false),
            (known(1000, Some(1001), Some(1000)), 1001, false),
            (known(1000, None, Some(1001)), 1001, true),
            (known(0, None, Some(0)), 1001, false),
            (known(0, Some(1001), Some(0)), 1001, true),
        ] {
            assert_eq!(known.has(owner), counts, "{known:?} {owner}");
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (own, theirs) = (root.join("shared/own"), root.join("shared/.git"));
        std::fs::create_dir_all(own.join("sub")).unwrap();
        std::fs::create_dir_all(&theirs).unwrap();
        assert_eq!(ProjectLocation::find(&own).worktree, root.join("shared"));
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&theirs, Some(54321), None).is_err() {
            return;
        }
        let location = ProjectLocation::find(&own);
        assert_ne!(location.worktree, root.join("shared"));
        std::fs::create_dir(own.join(".git")).unwrap();
        assert_eq!(ProjectLocation::find(&own.join("sub")).worktree, own);
        std::os::unix::fs::symlink(&theirs, own.join("sub/.git")).unwrap();
        assert_eq!(ProjectLocation::find(&own.join("sub")).worktree, own);
        std::os::unix::fs::chown(root.join("shared"), Some(54321), None).unwrap();
        assert_eq!(
            ProjectLocation::find(&root.join("shared")).worktree,
            root.join("shared")
        );
    }

    #[test]
    fn the_worktree_is_the_folder_with_git_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let bare = ProjectLocation::find(&root.join("a/b"));
        assert!(!bare.git || bare.worktree != root.join("a/b"));
        std::fs::create_dir(root.join(".git")).unwrap();
        let location = ProjectLocation::find(&root.join("a/b"));
        assert_eq!(location.worktree, root);
        assert_eq!(location.relative(), "a/b");
    }
}
