//! Version control of the project, for `GET /vcs` and similar routes.
//!
//! Every query is one `git` process with a deadline and an output limit. Programs that a repository names in its own configuration
//! (external diffs, text conversions, file-system monitors) are not run; filters run if the folder is trusted, in a sandbox limited
//! to the project. Files that the rules deny to read or to edit are skipped, and no patch touches them.

mod apply;
mod changes;
mod error;
mod filters;
mod parse;
mod patch_names;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::provenance::Actor;
use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::{Output, Spawner, Spec};
use serde::Serialize;
use tokio::sync::OnceCell;

pub use error::VcsError;

use crate::git_policy;
use crate::project_location::ProjectLocation;

const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum bytes of git's output. A larger patch is skipped; a longer list is truncated.
const MAX_OUTPUT: usize = 10 * 1024 * 1024;
/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It is another.
    Modified,
}

/// A changed file, as in `GET /vcs/status` and `GET /vcs/diff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Relative to the repository's root.
    pub file: String,
    /// The change as a patch; absent in a status, and if it is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Added lines; 0 for binary files.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// The kind of change.
    pub status: Change,
}

/// The base of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The last commit.
    Head,
    /// Where the branch left the default branch; empty if it is the default branch.
    Branch,
}

/// Returns whether a client may see a file, by its absolute path. Reads the disk.
pub type VisibleFn = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// What version control needs from the agent: its folder, and the permission rules.
pub trait VcsHost: Send + Sync {
    /// Returns the folder.
    fn location(&self) -> &ProjectLocation;

    /// Returns the user's home folder, whose git settings are used.
    fn home(&self) -> &Path;

    /// Returns the spawner for git.
    fn spawner(&self) -> &Spawner;

    /// Returns what is masked from git; `None` if it is not sandboxed. An error says why git must not be started.
    fn kept(&self) -> BoxFuture<'_, Result<Option<CoverWalk>, String>>;

    /// Returns whether the folder is trusted: filters of its repository are run.
    fn is_trusted(&self) -> bool;

    /// Returns whether the rules allow this operation (`read`, `edit`) on a file.
    fn may(&self, operation: &str, file: &Path) -> bool;

    /// Returns which files the rules let a client see, by their absolute paths, for one request.
    fn visible(&self) -> VisibleFn;

    /// Returns the file, relative to the root of the repository, that makes something run later and that `by` may not change, and
    /// what runs it.
    fn runs_later(&self, by: &Actor, file: &str) -> Option<(String, &'static str)>;

    /// Returns why `by` may not change these files without a grant that it lacks.
    fn lacking_grant(&self, by: &Actor, files: &[PathBuf]) -> Option<String>;
}

/// Queries git about one folder, for one request.
#[derive(Clone)]
pub struct Vcs {
    host: Arc<dyn VcsHost>,
    /// What is masked from git: computed once, with the first process.
    kept: OnceCell<Option<CoverWalk>>,
    /// Settings that disable the repository's filters, if they must not run.
    filters_off: OnceCell<Vec<(String, String)>>,
}

impl Vcs {
    /// Opens version control of the host's folder.
    #[must_use]
    pub fn new(host: Arc<dyn VcsHost>) -> Self {
        Self {
            host,
            kept: OnceCell::new(),
            filters_off: OnceCell::new(),
        }
    }

    fn location(&self) -> &ProjectLocation {
        self.host.location()
    }

    async fn run_in(
        &self,
        cwd: &Path,
        args: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Output, VcsError> {
        let off = self.filters_off().await?;
        let mut all = args.to_vec();
        if !self.host.is_trusted() && matches!(args.first(), Some(&("status" | "diff"))) {
            // In a submodule, git uses that one's settings, not these.
            all.insert(1, "--ignore-submodules=dirty");
        }
        self.run_with(cwd, &all, input, off).await
    }

    async fn run_with(
        &self,
        cwd: &Path,
        args: &[&str],
        input: Option<Vec<u8>>,
        settings: &[(String, String)],
    ) -> Result<Output, VcsError> {
        if let Some(why) = git_policy::unfit(&self.location().worktree) {
            return Err(VcsError::Sandbox(why));
        }
        let env = outrigger_sandbox::env::of_host(&[]);
        let path = env.iter().find(|(key, _)| key == "PATH");
        let git = path
            .and_then(|(_, path)| outrigger_sandbox::host_path::which_of_host("git", path))
            .ok_or(VcsError::NoGit)?;
        let guard = [
            "--no-optional-locks",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.quotepath=false",
            "-c",
            "color.ui=false",
        ];
        let home = self.host.home();
        let mut spec = Spec::new(git)
            .args(guard)
            .args(args)
            .cwd(cwd)
            .vars(env)
            // The user whose files the sandbox lets it read.
            .var("HOME", home)
            .vars(git_policy::variables(home))
            .vars(git_policy::NO_PROGRAMS)
            .vars(filters::variables(settings))
            .never_frozen()
            .label("git");
        let covers = self.kept.get_or_try_init(|| self.host.kept());
        let covers = covers.await.map_err(VcsError::Sandbox)?;
        let command = args.first().copied().unwrap_or_default();
        let sandbox =
            |covers: &CoverWalk| git_policy::policy(self.location(), home, covers.clone(), command);
        spec.policy = covers.as_ref().map(sandbox);
        let spawner = self.host.spawner();
        let run = outrigger_sandbox::run_with_input(spawner, spec, input, DEADLINE, MAX_OUTPUT);
        git_policy::watched(&self.location().worktree, run)
            .await
            .map_err(VcsError::Sandbox)?
            .map_err(|e| VcsError::Failed {
                what: (*args.first().unwrap_or(&"")).to_owned(),
                message: e.to_string(),
            })
    }

    async fn run(&self, args: &[&str]) -> Result<Output, VcsError> {
        self.run_in(&self.location().directory, args, None).await
    }

    /// Returns the output of a command that must succeed.
    async fn text(&self, args: &[&str]) -> Result<String, VcsError> {
        let output = self.run(args).await?;
        if output.exit.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(VcsError::Failed {
                what: (*args.first().unwrap_or(&"")).to_owned(),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            })
        }
    }

    /// Returns the output without its line end; `None` if the command failed or printed nothing.
    async fn word(&self, args: &[&str]) -> Option<String> {
        let text = self.text(args).await.ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the current branch; `None` outside git and on no branch.
    pub async fn branch(&self) -> Option<String> {
        self.location().git.then_some(())?;
        self.word(&["symbolic-ref", "--quiet", "--short", "HEAD"])
            .await
    }

    /// Returns the default branch: its name, and what to compare with. As in OpenCode: that of the remote, the one that git would
    /// create, or `main` or `master`.
    pub async fn default_branch(&self) -> Option<(String, String)> {
        self.location().git.then_some(())?;
        let remotes = self.word(&["remote"]).await.unwrap_or_default();
        let remotes: Vec<&str> = remotes.lines().collect();
        let remote = match remotes.as_slice() {
            [] => None,
            [only] => Some(*only),
            all => ["origin", "upstream"]
                .into_iter()
                .find(|name| all.contains(name))
                .or(all.first().copied()),
        };
        if let Some(remote) = remote {
            let head = format!("refs/remotes/{remote}/HEAD");
            let full = self.word(&["symbolic-ref", &head]).await;
            let short = full
                .as_deref()
                .and_then(|r| r.strip_prefix("refs/remotes/"));
            if let Some(short) = short
                && let Some(name) = short.strip_prefix(&format!("{remote}/"))
            {
                return Some((name.to_owned(), short.to_owned()));
            }
        }
        let branches = self
            .word(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
            .await
            .unwrap_or_default();
        let configured = self.word(&["config", "init.defaultBranch"]).await;
        let names = [configured.as_deref(), Some("main"), Some("master")];
        let name = names
            .into_iter()
            .flatten()
            .find(|name| branches.lines().any(|branch| branch == *name))?;
        Some((name.to_owned(), name.to_owned()))
    }

    /// Initialises a repository, unless the folder is in one.
    ///
    /// # Errors
    /// If git fails.
    pub async fn init(&self) -> Result<(), VcsError> {
        if self.location().git {
            return Ok(());
        }
        self.text(&["init", "--quiet"]).await.map(drop)
    }

    /// Returns whether a client may see a file that git has named relative to the root of the repository.
    ///
    /// Every list and patch passes through here. Git runs without files that the rules deny to read, and so sees them as changed:
    /// such a file is not listed at all.
    fn visible(&self) -> impl Fn(&str) -> bool + Send + Sync + use<> {
        let (visible, worktree) = (self.host.visible(), self.location().worktree.clone());
        move |file| visible(&worktree.join(file))
    }

    /// Returns whether the rules allow an operation on a file that git has named relative to the root of the repository.
    fn may(&self, what: &str, file: &str) -> bool {
        self.host.may(what, &self.location().worktree.join(file))
    }
}
