//! What git says of the project, for `GET /vcs` and its like.
//!
//! Every question is one `git` process with a deadline and a limit on its output. Programs that a repository names in
//! its own configuration (external diffs, text conversions, file-system monitors) are not run; filters are, in a box that
//! holds the project and nothing else. What the rules deny to read or to edit is left out, and no patch touches it.

mod parse;
mod patch_names;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::provenance::Actor;
use outrigger_sandbox::path_masks::Kept;
use outrigger_sandbox::{Output, Spawner, Spec, paths};
use serde::Serialize;
use tokio::sync::OnceCell;

use self::parse::{change, count, split};
use crate::git_policy;
use crate::place::Place;

const DEADLINE: Duration = Duration::from_secs(30);
/// Most bytes of one answer of git. Behind it a patch is left out; a list that is longer is cut.
const MAX_OUTPUT: usize = 10 * 1024 * 1024;
/// Files that git does not know are compared one by one: of more than this many only the names are told.
const MAX_UNTRACKED: usize = 200;

/// What happened to a file.
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

/// A changed file, as `GET /vcs/status` and `GET /vcs/diff` tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Relative to the repository's root.
    pub file: String,
    /// The change as a patch; absent where only a status was asked for, and where it is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Lines that are new; 0 for binary files.
    pub additions: u64,
    /// Lines that are gone.
    pub deletions: u64,
    /// What happened.
    pub status: Change,
}

/// What a diff compares the files with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The last commit.
    Head,
    /// Where the branch left the default branch; nothing when it is that one.
    Branch,
}

/// Why git did not do something.
#[derive(Debug, thiserror::Error)]
pub enum VcsError {
    /// The folder is under no version control.
    #[error("the folder is not in a git repository")]
    NotGit,
    /// There is no `git` on the path.
    #[error("there is no program `git` on the PATH; install it")]
    NoGit,
    /// The patch does not fit.
    #[error("the patch cannot be applied: {0}")]
    NotClean(String),
    /// A rule denies a file that the patch names.
    #[error("the configuration forbids to {what} {file}, which the patch names")]
    Denied {
        /// `read` or `edit`.
        what: &'static str,
        /// Relative to the root of the repository.
        file: String,
    },
    /// A plugin sent a patch that it could not write itself.
    #[error("the patch is not applied: {0}")]
    NotGranted(String),
    /// A plugin's patch names a file that makes something run later.
    #[error("a plugin's patch does not change {file}: {runs}")]
    RunsLater {
        /// Relative to the root of the repository.
        file: String,
        /// What runs it.
        runs: &'static str,
    },
    /// The rules cannot be kept from git, or a pipe is in the place of one of its files.
    #[error("git was not started: {0}")]
    Box(String),
    /// git failed otherwise.
    #[error("`git {what}` failed: {message}")]
    Failed {
        /// Its first argument.
        what: String,
        /// What it said.
        message: String,
    },
}

impl VcsError {
    /// Stable code; those of a patch are the reference's reasons.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotGit => "non-git",
            Self::NoGit => "no-git",
            Self::NotClean(_) => "not-clean",
            Self::Denied { .. } | Self::NotGranted(_) | Self::RunsLater { .. } => "denied",
            Self::Box(_) => "box",
            Self::Failed { .. } => "failed",
        }
    }
}

/// What version control needs of the agent: where it works, and what the rules leave.
pub trait VcsHost: Send + Sync {
    /// The folder.
    fn place(&self) -> &Place;

    /// The home folder of the user, whose settings of git count.
    fn home(&self) -> &Path;

    /// Starts git.
    fn spawner(&self) -> &Spawner;

    /// What is kept from git; `None` where it runs in no sandbox. An error says why git must not be started.
    fn kept(&self) -> BoxFuture<'_, Result<Option<Kept>, String>>;

    /// Whether the rules leave this operation (`read`, `edit`) on a file.
    fn may(&self, operation: &str, file: &Path) -> bool;

    /// The file among those that `by` would change, relative to the root of the repository, that makes something run later and
    /// is not `by`'s to change, and what runs it.
    fn runs_later(&self, by: &Actor, file: &str) -> Option<(String, &'static str)>;

    /// Why `by` may not change these files without a grant that it lacks.
    fn lacking_grant(&self, by: &Actor, files: &[PathBuf]) -> Option<String>;
}

/// Asks git about one folder, for one request.
#[derive(Clone)]
pub struct Vcs {
    host: Arc<dyn VcsHost>,
    /// What is kept from git: looked for once, with the first process.
    kept: OnceCell<Option<Kept>>,
}

impl Vcs {
    /// Version control of the host's folder.
    #[must_use]
    pub fn new(host: Arc<dyn VcsHost>) -> Self {
        Self {
            host,
            kept: OnceCell::new(),
        }
    }

    fn place(&self) -> &Place {
        self.host.place()
    }

    async fn run_in(
        &self,
        cwd: &Path,
        args: &[&str],
        input: Option<Vec<u8>>,
    ) -> Result<Output, VcsError> {
        if let Some(why) = git_policy::unfit(&self.place().worktree) {
            return Err(VcsError::Box(why));
        }
        let env = outrigger_sandbox::env::allow_list(&[]);
        let path = env.iter().find(|(key, _)| key == "PATH");
        let git = path
            .and_then(|(_, path)| outrigger_sandbox::which("git", path))
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
            // Whose files of the user's the box lets it read.
            .var("HOME", home)
            .vars(git_policy::variables(home))
            .vars(git_policy::NO_PROGRAMS)
            .label("git");
        let covers = self.kept.get_or_try_init(|| self.host.kept());
        let covers = covers.await.map_err(VcsError::Box)?;
        let boxed = |covers: &Kept| git_policy::policy(self.place(), home, covers.clone());
        spec.policy = covers.as_ref().map(boxed);
        outrigger_sandbox::run_with_input(self.host.spawner(), spec, input, DEADLINE, MAX_OUTPUT)
            .await
            .map_err(|e| VcsError::Failed {
                what: (*args.first().unwrap_or(&"")).to_owned(),
                message: e.to_string(),
            })
    }

    async fn run(&self, args: &[&str]) -> Result<Output, VcsError> {
        self.run_in(&self.place().directory, args, None).await
    }

    /// The output of a command that has to succeed.
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

    /// The output without its line end, `None` when the command failed or said nothing.
    async fn word(&self, args: &[&str]) -> Option<String> {
        let text = self.text(args).await.ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The branch that is checked out; `None` outside git and on no branch.
    pub async fn branch(&self) -> Option<String> {
        self.place().git.then_some(())?;
        self.word(&["symbolic-ref", "--quiet", "--short", "HEAD"])
            .await
    }

    /// The default branch: its name, and what to compare with. As the reference: that of the remote, else the one that
    /// git would make, else `main` or `master`.
    pub async fn default_branch(&self) -> Option<(String, String)> {
        self.place().git.then_some(())?;
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

    async fn has_head(&self) -> bool {
        self.word(&["rev-parse", "--verify", "--quiet", "HEAD"])
            .await
            .is_some()
    }

    /// Changed files below the folder since the last commit, those that git does not know included, without patches.
    ///
    /// # Errors
    /// When git fails.
    pub async fn status(&self) -> Result<Vec<FileChange>, VcsError> {
        if !self.place().git {
            return Ok(Vec::new());
        }
        let base = if self.has_head().await {
            Some("HEAD".to_owned())
        } else {
            None
        };
        self.changes(base.as_deref()).await
    }

    /// Changed files with their patches; `context` is the number of lines around a change.
    ///
    /// # Errors
    /// When git fails.
    pub async fn diff(&self, against: Against, context: u32) -> Result<Vec<FileChange>, VcsError> {
        if !self.place().git {
            return Ok(Vec::new());
        }
        let base = match against {
            Against::Head if self.has_head().await => Some("HEAD".to_owned()),
            Against::Head => None,
            Against::Branch => {
                let Some((name, reference)) = self.default_branch().await else {
                    return Ok(Vec::new());
                };
                if self.branch().await.is_some_and(|branch| branch == name) {
                    return Ok(Vec::new());
                }
                match self.word(&["merge-base", &reference, "HEAD"]).await {
                    Some(base) => Some(base),
                    None => return Ok(Vec::new()),
                }
            }
        };
        let mut changes = self.changes(base.as_deref()).await?;
        let mut patches = match &base {
            Some(base) => split(&self.patch(base, context).await?),
            None => BTreeMap::new(),
        };
        let mut room = MAX_OUTPUT;
        let mut asked = 0;
        for change in &mut changes {
            let patch = match patches.remove(&change.file) {
                Some(patch) => Some(patch),
                None if asked < MAX_UNTRACKED && room > 0 => {
                    asked += 1;
                    self.untracked(&change.file, context).await
                }
                None => None,
            };
            // Of a file that may not be read, that it has changed is all that is told.
            let shown = patch.filter(|_| self.may("read", &change.file));
            change.patch = shown.filter(|patch| patch.len() <= room);
            room -= change.patch.as_ref().map_or(0, String::len);
        }
        Ok(changes)
    }

    /// The whole change since the last commit as one patch.
    ///
    /// # Errors
    /// When git fails, or the patch is too large to be told whole: half a patch is worse than none.
    pub async fn raw(&self) -> Result<String, VcsError> {
        if !self.place().git {
            return Ok(String::new());
        }
        let mut pieces = Vec::new();
        if self.has_head().await {
            let all = split(&self.patch("HEAD", 3).await?);
            let shown = all.into_values().filter(|patch| {
                let named = patch_names::files(patch);
                named.iter().all(|file| self.may("read", file))
            });
            pieces.push(shown.collect());
        }
        for (file, code) in self.codes().await? {
            if code == "??" && self.may("read", &file) {
                let patch = self.untracked(&file, 3).await;
                pieces.push(patch.ok_or_else(|| VcsError::Failed {
                    what: "diff".into(),
                    message: format!("{file} is too large for a patch"),
                })?);
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        Ok(pieces.join("\n"))
    }

    /// Applies a patch to the files of the folder. Files outside the repository are out of its reach (git sees to that), and those
    /// that make something run later out of a plugin's.
    ///
    /// # Errors
    /// [`VcsError::NotGit`], [`VcsError::NotClean`], [`VcsError::Denied`], [`VcsError::RunsLater`], [`VcsError::NotGranted`]; then
    /// nothing was changed.
    pub async fn apply(&self, patch: &str, by: &Actor) -> Result<(), VcsError> {
        if !self.place().git {
            return Err(VcsError::NotGit);
        }
        let named = self.named(patch).await?;
        for file in &named {
            let file = paths::resolve(&self.place().worktree, file);
            let file = file.strip_prefix(&self.place().worktree).unwrap_or(&file);
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
        let output = self
            .run_in(&self.place().directory, &["apply", "-"], Some(patch.into()))
            .await?;
        if output.exit.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        Err(VcsError::NotClean(message.trim().to_owned()))
    }

    /// What a patch may touch, from the root of the repository: what git makes of its names, which is a matter of the
    /// patch's form and of the folder, and, since git tells of new places alone, the names themselves in both readings.
    async fn named(&self, patch: &str) -> Result<Vec<PathBuf>, VcsError> {
        let args = ["apply", "--numstat", "-z", "-"];
        let output = self
            .run_in(&self.place().directory, &args, Some(patch.into()))
            .await?;
        if !output.exit.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(VcsError::NotClean(message.trim().to_owned()));
        }
        let told = String::from_utf8_lossy(&output.stdout);
        let told = told
            .split('\0')
            .filter_map(|line| line.splitn(3, '\t').nth(2));
        let mut files: Vec<PathBuf> = told.map(PathBuf::from).collect();
        let above = self.place().directory.strip_prefix(&self.place().worktree);
        let above = above.unwrap_or(Path::new(""));
        for file in patch_names::files(patch) {
            files.push(above.join(&file));
            files.push(file.into());
        }
        Ok(files)
    }

    /// Makes the folder a repository, if it is in none.
    ///
    /// # Errors
    /// When git fails.
    pub async fn init(&self) -> Result<(), VcsError> {
        if self.place().git {
            return Ok(());
        }
        self.text(&["init", "--quiet"]).await.map(drop)
    }

    /// Whether the rules leave a file, which git has named from the root of the repository.
    fn may(&self, what: &str, file: &str) -> bool {
        self.host.may(what, &self.place().worktree.join(file))
    }

    /// Names and two-letter codes of what is not as in the last commit.
    async fn codes(&self) -> Result<Vec<(String, String)>, VcsError> {
        let text = self
            .text(&[
                "status",
                "--porcelain=v1",
                "--untracked-files=all",
                "--no-renames",
                "-z",
                "--",
                ".",
            ])
            .await?;
        Ok(text
            .split('\0')
            .filter_map(|line| Some((line.get(3..)?.to_owned(), line.get(..2)?.to_owned())))
            .filter(|(file, _)| !file.is_empty())
            .collect())
    }

    /// Changed files since `base` (all files when there is no commit), by name.
    async fn changes(&self, base: Option<&str>) -> Result<Vec<FileChange>, VcsError> {
        let mut found: BTreeMap<String, Change> = BTreeMap::new();
        let mut counts = BTreeMap::new();
        if let Some(base) = base {
            let mut args = vec![
                "diff",
                "--no-ext-diff",
                "--no-renames",
                "--name-status",
                "-z",
            ];
            args.extend([base, "--", "."]);
            let text = self.text(&args).await?;
            let mut words = text.split('\0');
            while let (Some(code), Some(file)) = (words.next(), words.next()) {
                found.insert(file.to_owned(), change(code));
            }
            if let Some(flag) = args.get_mut(3) {
                *flag = "--numstat";
            }
            let text = self.text(&args).await?;
            counts.extend(text.split('\0').filter_map(count));
        }
        for (file, code) in self.codes().await? {
            if base.is_none() || code == "??" {
                found.entry(file).or_insert_with(|| change(&code));
            }
        }
        let mut changes = Vec::with_capacity(found.len());
        let mut asked = 0;
        for (file, status) in found {
            let (additions, deletions) = match counts.get(&file) {
                Some(known) => *known,
                None if status == Change::Added && asked < MAX_UNTRACKED => {
                    asked += 1;
                    self.count_untracked(&file).await.unwrap_or_default()
                }
                None => (0, 0),
            };
            changes.push(FileChange {
                file,
                patch: None,
                additions,
                deletions,
                status,
            });
        }
        Ok(changes)
    }

    async fn patch(&self, base: &str, context: u32) -> Result<String, VcsError> {
        let unified = format!("--unified={context}");
        let args = [
            "diff",
            "--patch",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            &unified,
            base,
            "--",
            ".",
        ];
        self.text(&args).await
    }

    /// The patch that makes a file that git does not know; `None` when it is too large.
    async fn untracked(&self, file: &str, context: u32) -> Option<String> {
        let unified = format!("--unified={context}");
        let args = [
            "diff",
            "--no-index",
            "--patch",
            "--no-ext-diff",
            "--no-textconv",
            &unified,
            "--",
            "/dev/null",
            file,
        ];
        // The exit code is that of a difference, which there is.
        let output = self
            .run_in(&self.place().worktree, &args, None)
            .await
            .ok()?;
        (!output.truncated).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn count_untracked(&self, file: &str) -> Option<(u64, u64)> {
        let args = ["diff", "--no-index", "--numstat", "--", "/dev/null", file];
        let output = self
            .run_in(&self.place().worktree, &args, None)
            .await
            .ok()?;
        count(&String::from_utf8_lossy(&output.stdout)).map(|(_, counts)| counts)
    }
}
