//! The context of a tool call: its folders, its session, its limits, and its state so far.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_protocol::descriptor::{Capability, Constraints};
use outrigger_protocol::tool::ToolCall;
use outrigger_sandbox::Spawner;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_sandbox::process_time::Instant;
use serde_json::Value;

use super::{CancelFlag, PermissionAsk, ToolHost, lock};
use crate::error::ToolError;

/// Limits of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Maximum number of lines of output for the model (OpenCode's 2000).
    pub max_lines: usize,
    /// Maximum bytes of output for the model (OpenCode's 50 KiB).
    pub max_bytes: usize,
    /// Maximum bytes of one output kept in a file.
    pub artifact_bytes: u64,
    /// Deadline of a tool without its own.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_lines: 2000,
            max_bytes: 50 * 1024,
            artifact_bytes: 512 * 1024 * 1024,
            deadline: Duration::from_secs(600),
        }
    }
}

/// The capabilities granted to a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// A description: "the agent `plan`".
    pub who: String,
    /// The capabilities.
    pub capabilities: BTreeSet<Capability>,
    /// What the user can do to grant more.
    pub how: String,
}

/// The decision of a rule, without a question.
pub(crate) const BY_RULE: &str = "allow";

#[derive(Debug, Default)]
struct Shared {
    decisions: Mutex<Vec<String>>,
    reported: Mutex<Option<Value>>,
    answer: Mutex<Option<Value>>,
    /// The user has refused one of its questions.
    refused: AtomicBool,
    /// Somebody has answered one of its questions with yes.
    approved: AtomicBool,
    asking: AtomicUsize,
    waited_ms: AtomicU64,
    kept: Mutex<Vec<PathBuf>>,
    /// Where each path of the call pointed when it was asked about.
    targets: Mutex<HashMap<PathBuf, Target>>,
}

/// Where a path pointed when it was asked about.
#[derive(Debug)]
struct Target {
    /// With links followed.
    real: PathBuf,
    /// The file that was there; `None` if there was none.
    file: Option<Identity>,
}

/// Identity of a file, whatever its name: device and inode.
type Identity = (u64, u64);

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino())
}

impl Target {
    fn at(real: &Path) -> Self {
        Self {
            real: real.to_owned(),
            file: fs::symlink_metadata(real).ok().as_ref().map(identity),
        }
    }
}

/// The context of a running tool. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call: ToolCall,
    /// Working directory of the session, absolute.
    pub directory: PathBuf,
    /// Root of the project, absolute; `/` if there is none.
    pub worktree: PathBuf,
    /// The session.
    pub host: Arc<dyn ToolHost>,
    /// Raised when the turn is cancelled.
    pub cancel: CancelFlag,
    /// Starts processes.
    pub spawner: Spawner,
    /// Folder for the full text of truncated output.
    pub artifacts: PathBuf,
    /// Limits.
    pub limits: Limits,
    /// Grants of the agent, and of those that called it as their subagent; empty: everything.
    pub granted: Vec<Grant>,
    /// The agents that called the current one as their subagent, the nearest last.
    pub callers: Vec<String>,
    /// Roots that every path of this call must be in.
    roots: Vec<Roots>,
    shared: Arc<Shared>,
}

impl ToolContext {
    /// Creates a context that is never cancelled, with the default limits; set the public fields to change that.
    #[must_use]
    pub fn new(
        call: ToolCall,
        directory: PathBuf,
        worktree: PathBuf,
        host: Arc<dyn ToolHost>,
        spawner: Spawner,
        artifacts: PathBuf,
    ) -> Self {
        Self {
            call,
            directory,
            worktree,
            host,
            cancel: CancelFlag::never(),
            spawner,
            artifacts,
            limits: Limits::default(),
            granted: Vec::new(),
            callers: Vec::new(),
            roots: Vec::new(),
            shared: Arc::default(),
        }
    }

    /// Asks, and records the decision in the call's record.
    ///
    /// # Errors
    /// [`ToolError::Denied`] and [`ToolError::Rejected`] with the refusal.
    pub async fn ask(&self, ask: PermissionAsk) -> Result<(), ToolError> {
        self.decision(ask).await.map(drop)
    }

    /// Like [`Self::ask`], and returns how it was decided.
    pub(crate) async fn decision(&self, ask: PermissionAsk) -> Result<String, ToolError> {
        let what = format!("{} {}", ask.permission, ask.patterns.join(", "));
        let waiting = self.pause_deadline();
        let answer = self.host.ask(ask).await;
        drop(waiting);
        let (decision, result) = match answer {
            Ok(decision) => {
                if decision != BY_RULE {
                    self.shared.approved.store(true, Ordering::SeqCst);
                }
                (decision.clone(), Ok(decision))
            }
            Err(refusal) => {
                self.shared.refused.store(true, Ordering::SeqCst);
                ("deny".to_owned(), Err(refusal))
            }
        };
        lock(&self.shared.decisions).push(format!("{what} -> {decision}"));
        result
    }

    /// Stops the deadline of the call until the guard is dropped, which is also if the call is cancelled.
    pub(crate) fn pause_deadline(&self) -> WaitTimer<'_> {
        self.shared.asking.fetch_add(1, Ordering::SeqCst);
        WaitTimer(&self.shared, Instant::now())
    }

    /// Returns whether the user refused one of its questions. That is final: the call is not retried (D7).
    pub(crate) fn is_refused(&self) -> bool {
        self.shared.refused.load(Ordering::SeqCst)
    }

    /// Returns whether somebody answered one of its questions with yes, instead of a rule.
    pub(crate) fn is_approved(&self) -> bool {
        self.shared.approved.load(Ordering::SeqCst)
    }

    /// Reports the progress of the call.
    pub fn progress(&self, title: Option<String>, metadata: Value) {
        *lock(&self.shared.reported) = Some(metadata.clone());
        self.host.progress(title, metadata);
    }

    /// Sets what the hooks of `tool.after_result` get instead of the output: the answer in the tool's own form. In
    /// OpenCode those of MCP tools get `{content: [...]}` as the server sent it. See [`crate::Tool::read`].
    pub fn answered(&self, answer: Value) {
        *lock(&self.shared.answer) = Some(answer);
    }

    /// Records a file that we created for this call to keep all of its output.
    pub(crate) fn keeps(&self, path: &Path) {
        lock(&self.shared.kept).push(path.to_owned());
    }

    /// Returns whether a file is one of those. A tool may name any other.
    pub(crate) fn has_kept(&self, path: &Path) -> bool {
        lock(&self.shared.kept).iter().any(|it| it == path)
    }

    pub(crate) fn answer(&self) -> Option<Value> {
        lock(&self.shared.answer).clone()
    }
    pub(crate) fn decisions(&self) -> Vec<String> {
        lock(&self.shared.decisions).clone()
    }
    pub(crate) fn reported(&self) -> Option<Value> {
        lock(&self.shared.reported).clone()
    }
    /// Returns how long the call has waited for the user; that time does not count towards its deadline.
    pub(crate) fn waited(&self) -> (bool, Duration) {
        (
            self.shared.asking.load(Ordering::SeqCst) > 0,
            Duration::from_millis(self.shared.waited_ms.load(Ordering::SeqCst)),
        )
    }
    /// Applies the roots that the tool declares.
    pub(crate) fn apply_constraints(&mut self, limits: &Constraints, held: &[Vec<String>]) {
        let declared = [&limits.allowed_read_roots, &limits.allowed_write_roots];
        let absolute = |root: &String| resolve(&self.directory, Path::new(root));
        let roots = declared.into_iter().flatten().chain(held);
        self.roots = roots
            .map(|roots| Roots::new(roots.iter().map(absolute)))
            .collect();
    }

    /// Checks that the roots of the tool contain this path, whose links have been followed.
    ///
    /// # Errors
    /// [`ToolError::OutsideRoots`].
    pub(crate) fn held(&self, real: &Path) -> Result<(), ToolError> {
        let outside = |roots: &&Roots| !roots.as_slice().iter().any(|root| real.starts_with(root));
        let Some(roots) = self.roots.iter().find(outside) else {
            return Ok(());
        };
        Err(ToolError::OutsideRoots {
            tool: self.call.tool.clone(),
            path: real.display().to_string(),
            roots: roots
                .as_slice()
                .iter()
                .map(|root| root.display().to_string())
                .collect(),
        })
    }

    /// Checks that the machine's policy allows a path, as named and as resolved.
    ///
    /// # Errors
    /// [`ToolError::Forbidden`].
    pub(crate) fn allowed(&self, shown: &Path, real: &Path) -> Result<(), ToolError> {
        let forbids = self.spawner.forbids();
        let of_real =
            |it: &dyn outrigger_sandbox::Forbids| (shown != real).then(|| it.file(real))?;
        let pattern = forbids.and_then(|it| it.file(shown).or_else(|| of_real(it)));
        match pattern {
            Some(pattern) => Err(ToolError::Forbidden {
                what: shown.display().to_string(),
                pattern,
            }),
            None => Ok(()),
        }
    }

    /// Records where a path points the first time. The decision is about that target, so it may not change later.
    ///
    /// # Errors
    /// [`ToolError::Failed`].
    pub(crate) fn has_not_moved(&self, shown: &Path, real: &Path) -> Result<(), ToolError> {
        let mut targets = lock(&self.shared.targets);
        let before = targets
            .entry(shown.to_owned())
            .or_insert_with(|| Target::at(real));
        if before.real == real {
            Ok(())
        } else {
            Err(ToolError::failed(format!(
                "{} leads elsewhere than when it was checked: something changed a link on its way. Try again when that has ended.",
                shown.display()
            )))
        }
    }

    /// Returns whether a file opened for reading is the one that was at this path the first time: another file may have been
    /// renamed to it while the question was open, and would be shown under a name that was approved for something else.
    pub(crate) fn is_checked(&self, shown: &Path, opened: &Metadata) -> bool {
        let targets = lock(&self.shared.targets);
        let before = targets.get(shown).and_then(|target| target.file);
        before == Some(identity(opened))
    }

    /// Forgets where a path pointed, so that it can be checked again.
    pub(crate) fn forget_target(&self, shown: &Path) {
        lock(&self.shared.targets).remove(shown);
    }

    /// Returns a context with the same folders and session for another call, without questions or reports so far.
    pub(crate) fn for_call(mut self, call: ToolCall) -> Self {
        self.call = call;
        self.shared = Arc::default();
        self
    }
}

pub(crate) struct WaitTimer<'a>(&'a Shared, Instant);

impl Drop for WaitTimer<'_> {
    fn drop(&mut self) {
        let ms = u64::try_from(self.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.waited_ms.fetch_add(ms, Ordering::SeqCst);
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}
