//! Runs git on the store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::{Policy, Spec};

use super::{SnapshotError, Snapshots};
use crate::git_policy;

/// A project in which git takes longer gets no snapshots: the tools wait for them.
const DEADLINE: Duration = Duration::from_secs(60);
/// Maximum bytes of output.
const MAX_OUTPUT: usize = 64 * 1024 * 1024;

/// Returns the git program.
pub(super) fn program() -> Option<PathBuf> {
    let env = outrigger_sandbox::env::of_host(&[]);
    let path = env.into_iter().find(|(key, _)| key == "PATH")?.1;
    outrigger_sandbox::host_path::which_of_host("git", path)
}

impl Snapshots {
    /// Returns the sandbox of git: its regular access to the project, and the store. Nothing is masked: denied files are
    /// excluded by name.
    fn policy(&self, command: &str) -> Policy {
        // None of the user's files: their configuration is not used.
        let mut policy = git_policy::policy(
            &self.location,
            Path::new("/nonexistent"),
            CoverWalk::default(),
            command,
        );
        policy.write.push(self.store.clone());
        policy
    }

    pub(super) async fn git(
        &self,
        args: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, SnapshotError> {
        self.git_in(&self.location.worktree, args, input).await
    }

    /// Returns the output as one line of text.
    pub(super) async fn text(
        &self,
        args: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<String, SnapshotError> {
        let out = self.git(args, input).await?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// The user's and the system's configuration are not used: filters and hooks in them are programs.
    pub(super) async fn git_in(
        &self,
        folder: &Path,
        args: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, SnapshotError> {
        let what = || args.first().copied().unwrap_or_default().to_owned();
        let Some(program) = &self.git else {
            return Err(SnapshotError::Run("there are no snapshots here".into()));
        };
        if let Some(why) = git_policy::unfit(&self.location.worktree) {
            return Err(SnapshotError::Run(why));
        }
        let mut spec = Spec::new(program)
            .arg("--literal-pathspecs")
            .arg("--git-dir")
            .arg(&self.store)
            .arg("--work-tree")
            .arg(&self.location.worktree)
            .args(args)
            .cwd(folder)
            .vars(outrigger_sandbox::env::of_host(&[]))
            .var("GIT_CONFIG_NOSYSTEM", "1")
            .var("GIT_CONFIG_GLOBAL", "/dev/null")
            .vars(git_policy::NO_PROGRAMS)
            .var("LC_ALL", "C")
            .never_frozen()
            .label("git");
        spec.policy = self.withheld.as_ref().map(|_| self.policy(&what()));
        let run =
            outrigger_sandbox::run_with_input(&self.spawner, spec, input, DEADLINE, MAX_OUTPUT);
        let output = git_policy::watched(&self.location.worktree, run)
            .await
            .map_err(SnapshotError::Run)?
            .map_err(|e| SnapshotError::Run(e.to_string()))?;
        if output.timed_out {
            return Err(SnapshotError::Git {
                what: what(),
                reason: format!("it took longer than {} s", DEADLINE.as_secs()),
            });
        }
        if output.exit.code != Some(0) {
            return Err(SnapshotError::Git {
                what: what(),
                reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        Ok(output.stdout)
    }
}
