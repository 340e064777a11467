//! Which project a folder belongs to.

use std::path::{Path, PathBuf};

use outrigger_protocol::session::Project;
use outrigger_sandbox::path_masks::Kept;
use outrigger_sandbox::{Spawner, Spec};
use outrigger_store::Store;

use crate::git_policy;

/// A folder and the project that it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where the agent works, absolute and without links.
    pub directory: PathBuf,
    /// Root of the version control's folder, else `directory`.
    pub worktree: PathBuf,
    /// The project is under git.
    pub git: bool,
}

impl Place {
    /// Looks upwards for a `.git` folder or file.
    #[must_use]
    pub fn find(directory: &Path) -> Self {
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_path_buf());
        let root = directory
            .ancestors()
            .find(|dir| dir.join(".git").exists())
            .map(Path::to_path_buf);
        let git = root.is_some();
        Self {
            worktree: root.unwrap_or_else(|| directory.clone()),
            directory,
            git,
        }
    }

    /// Working folder relative to the project's root; empty when it is the root.
    #[must_use]
    pub fn relative(&self) -> String {
        self.directory
            .strip_prefix(&self.worktree)
            .unwrap_or(Path::new(""))
            .to_string_lossy()
            .into_owned()
    }

    /// The project record. Its identifier is the repository's first commit, so that clones share it, as in the
    /// reference; `global` without git or without a commit.
    /// Git runs in a box that leaves it this repository, with the user's files in `home`; without `home` in none.
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

    /// The first commit never changes, so git is asked once for a folder.
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
        let env = outrigger_sandbox::env::allow_list(&[]);
        let path = env
            .iter()
            .find(|(key, _)| key == "PATH")
            .map(|(_, value)| value.clone());
        let git = outrigger_sandbox::which("git", path?)?;
        let mut spec = Spec::new(git)
            .args(["rev-list", "--max-parents=0", "HEAD"])
            .cwd(&self.worktree)
            .vars(env)
            .vars(git_policy::NO_PROGRAMS);
        if let Some(home) = home {
            spec = spec.var("HOME", home).vars(git_policy::variables(home));
            spec.policy = Some(git_policy::policy(self, home, Kept::default()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_is_the_folder_with_git_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        let bare = Place::find(&root.join("a/b"));
        assert!(!bare.git || bare.worktree != root.join("a/b"));
        std::fs::create_dir(root.join(".git")).unwrap();
        let place = Place::find(&root.join("a/b"));
        assert_eq!(place.worktree, root);
        assert_eq!(place.relative(), "a/b");
    }
}
