//! Applies patches after checking the files they name.

use std::path::{Path, PathBuf};

use outrigger_protocol::provenance::Actor;
use outrigger_sandbox::paths;

use super::{Vcs, VcsError, patch_names};

impl Vcs {
    /// Applies a patch to the files of the folder. Files outside the repository cannot be changed (git ensures that), and plugins
    /// cannot change those that make something run later.
    ///
    /// # Errors
    /// [`VcsError::NotGit`], [`VcsError::NotClean`], [`VcsError::Denied`], [`VcsError::RunsLater`], [`VcsError::NotGranted`];
    /// then nothing was changed.
    pub async fn apply(&self, patch: &str, by: &Actor) -> Result<(), VcsError> {
        if !self.location().git {
            return Err(VcsError::NotGit);
        }
        let named = self.named(patch).await?;
        for file in &named {
            let file = paths::resolve(&self.location().worktree, file);
            let file = file
                .strip_prefix(&self.location().worktree)
                .unwrap_or(&file);
            let file = file.to_string_lossy();
            for what in ["read", "edit"] {
                if !self.may(what, &file) {
                    return Err(VcsError::Denied {
                        what,
                        file: file.into_owned(),
                    });
                }
            }
            if let Some((file, runs)) = self.host.runs_later(by, &file) {
                return Err(VcsError::RunsLater { file, runs });
            }
        }
        if let Some(why) = self.host.lacking_grant(by, &named) {
            return Err(VcsError::NotGranted(why));
        }
        // Of files that a command reads which the user let run outside of its sandbox, none is changed meanwhile.
        let _changes = self.host.spawner().change_files().await;
        let output = self
            .run_in(
                &self.location().directory,
                &["apply", "-"],
                Some(patch.into()),
            )
            .await?;
        if output.exit.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(VcsError::NotClean(message.trim().to_owned()))
    }

    /// Returns the paths that a patch may touch, relative to the root of the repository: git's interpretation of its names, which
    /// depends on the patch's form and the folder, and, since git reports only new names, the names themselves in both readings.
    async fn named(&self, patch: &str) -> Result<Vec<PathBuf>, VcsError> {
        let args = ["apply", "--numstat", "-z", "-"];
        let output = self
            .run_in(&self.location().directory, &args, Some(patch.into()))
            .await?;
        if !output.exit.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(VcsError::NotClean(message.trim().to_owned()));
        }
        let names = String::from_utf8_lossy(&output.stdout);
        let names = names
            .split('\0')
            .filter_map(|line| line.splitn(3, '\t').nth(2));
        let mut files: Vec<PathBuf> = names.map(PathBuf::from).collect();
        let above = self
            .location()
            .directory
            .strip_prefix(&self.location().worktree)
            .unwrap_or(Path::new(""));
        for file in patch_names::files(patch) {
            files.push(above.join(&file));
            files.push(file.into());
        }
        Ok(files)
    }
}
