//! The one thread that starts processes, and the handle to it.

mod start;

use std::path::Path;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::error::SandboxError;
use crate::fs::absent::Absent;
use crate::fs::lookups::Lookups;
use crate::fs::path_masks::{CoverWalk, Covers, CoversFn, WALK_TIMEOUT};
use crate::fs::stale_masks::Hidden;
use crate::namespaces::support;
use crate::policy::Policy;
use crate::policy::level::{self, Level};
use crate::processes::freezer::{FileChanges, Freezer, ProcessFreeze, Tree};
use crate::processes::ledger::Ledger;
use crate::processes::own;
use crate::seccomp::calls;
use crate::seccomp::connects;
use crate::spawn::child::{Child, Started};
use crate::spawn::sandbox_overrides::SandboxOverrides;
use crate::spawn::scoped_network::ScopedNetwork;
use crate::spawn::setup;
use crate::spawn::spec::Spec;
use start::{find, start};

/// A handle to the spawning thread; cheap to clone. All handles of a host share one thread, which never ends: the parent-death signal of
/// every process depends on it.
#[derive(Clone)]
pub struct Spawner {
    jobs: mpsc::Sender<Job>,
    ledger: Option<Ledger>,
    recorder: Option<StartFn>,
    sandbox: Option<DefaultSandbox>,
    network: Option<Arc<ScopedNetwork>>,
    forbids: Option<Arc<dyn Forbids>>,
    freezer: Freezer,
}

/// The machine's policy of forbidden files and programs. It applies whenever a file is opened or a program is started. Results are the
/// patterns that forbid it.
pub trait Forbids: Send + Sync {
    /// Checks a file or folder by its absolute path; its links may have been followed or not.
    fn file(&self, path: &Path) -> Option<String>;
    /// Returns whether any program is forbidden.
    fn has_programs(&self) -> bool;
    /// Checks a program, by name or by the path of its file.
    fn program(&self, program: &Path) -> Option<String>;
}

#[derive(Clone)]
struct DefaultSandbox {
    covers: CoversFn,
    /// Returns the sandbox of processes without their own; `None` allows everything that is not masked.
    base: Option<BaseFn>,
    strict: bool,
    own: SandboxOverrides,
}

impl std::fmt::Debug for Spawner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spawner")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

/// Creates the sandbox of a process when it is started. Blocking.
pub type BaseFn = Arc<dyn Fn() -> Result<Policy, SandboxError> + Send + Sync>;

/// Called on the spawning thread for every started process: it must not block.
pub type StartFn = Arc<dyn Fn(&ProcessStart) + Send + Sync>;

/// A process that was started, for the audit (C13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStart {
    /// Its label.
    pub label: String,
    /// The program's file.
    pub program: String,
    /// Its process id.
    pub pid: u32,
    /// How much of its sandbox the kernel enforces; `None` if no sandbox was requested.
    pub level: Option<Level>,
    /// The sandbox allows everything that is not masked.
    pub open: bool,
}

struct Job {
    spec: Arc<Spec>,
    ledger: Option<Ledger>,
    recorder: Option<StartFn>,
    reply: oneshot::Sender<Result<Started, NotStarted>>,
}

/// Why a process was not started.
enum NotStarted {
    Failed(SandboxError),
    /// A path to mask is no longer where it was found. The search may be repeated.
    Moved(SandboxError),
}

impl From<SandboxError> for NotStarted {
    fn from(error: SandboxError) -> Self {
        Self::Failed(error)
    }
}

impl Spawner {
    /// Starts the spawning thread, or attaches to the running one.
    ///
    /// # Errors
    /// [`SandboxError::Thread`] if no thread can be started.
    pub fn new() -> Result<Self, SandboxError> {
        static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
        let jobs = match JOBS.get() {
            Some(jobs) => jobs,
            // Two first callers at once: the loser's thread ends with its sender, before it started anything.
            None => {
                let jobs = start_thread()?;
                JOBS.get_or_init(|| jobs)
            }
        };
        Ok(Self::bare(jobs.clone()))
    }

    fn bare(jobs: mpsc::Sender<Job>) -> Self {
        Self {
            jobs,
            ledger: None,
            recorder: None,
            sandbox: None,
            network: None,
            forbids: None,
            freezer: Freezer::default(),
        }
    }

    /// Returns a handle that masks what `covers` finds from every process that has no sandbox yet. `strict`: a process from which the
    /// system cannot mask all of it is not started.
    #[must_use]
    pub fn with_covers(mut self, covers: CoversFn, strict: bool) -> Self {
        let own = SandboxOverrides::default();
        self.sandbox = Some(DefaultSandbox {
            covers,
            base: None,
            strict,
            own,
        });
        self
    }

    /// Returns a handle whose processes use the sandbox that `base` creates, unless they have a narrower one ([`SandboxOverrides`]).
    /// Without covers ([`Self::with_covers`]) nothing is sandboxed.
    #[must_use]
    pub fn with_base(mut self, base: BaseFn) -> Self {
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.base = Some(base);
        }
        self
    }

    /// Returns a handle whose processes use this sandbox unless they have their own; what the handle masks stays masked.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        let sandbox = self.sandbox.take();
        let (covers, strict): (CoversFn, bool) = match sandbox {
            Some(sandbox) => (sandbox.covers, sandbox.strict),
            None => (Arc::new(|| Ok(Covers::default())), false),
        };
        self.sandbox = Some(DefaultSandbox {
            covers,
            base: Some(Arc::new(move || Ok(policy.clone()))),
            strict,
            own: SandboxOverrides::default(),
        });
        self
    }

    /// Returns a handle whose processes may have a narrower sandbox, by their label.
    #[must_use]
    pub fn with_overrides(mut self, own: SandboxOverrides) -> Self {
        if let Some(sandbox) = &mut self.sandbox {
            sandbox.own = own;
        }
        self
    }

    /// Returns whether processes with this label have their own sandbox ([`SandboxOverrides`]).
    #[must_use]
    pub fn has_sandbox_override(&self, label: &str) -> bool {
        self.sandbox
            .as_ref()
            .is_some_and(|it| it.own.of(label).is_some())
    }

    /// Returns the proxy of the sandbox of this label ([`SandboxOverrides`]), if it has one.
    #[must_use]
    pub fn proxy_of(&self, label: &str) -> Option<String> {
        self.sandbox.as_ref()?.own.of(label)?.proxy()
    }

    /// Returns a handle whose processes may connect to these hosts and nothing else; those with a narrower sandbox ([`SandboxOverrides`])
    /// use its hosts.
    #[must_use]
    pub fn with_hosts(mut self, network: Arc<ScopedNetwork>) -> Self {
        self.network = Some(network);
        self
    }

    /// Returns a handle that does not start forbidden programs.
    #[must_use]
    pub fn with_forbidden(mut self, forbids: Arc<dyn Forbids>) -> Self {
        self.forbids = Some(forbids);
        self
    }

    /// Returns the policy of what is forbidden to processes of this handle, and to other code that works for the same user.
    #[must_use]
    pub fn forbids(&self) -> Option<&dyn Forbids> {
        self.forbids.as_deref()
    }

    /// Returns a handle that reports every process it starts.
    #[must_use]
    pub fn with_recorder(mut self, recorder: StartFn) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// Returns a handle that records every process it starts in `ledger` until it has been reaped.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Freezes every process that this handle and its clones have started, and starts no new ones, until the result is dropped;
    /// [`Spec::never_frozen`] is exempt. A command that holds a lock runs on for a moment, until it releases it.
    ///
    /// # Errors
    /// [`SandboxError::NotFrozen`] if one of them cannot be stopped or could wake itself; [`SandboxError::NoFilters`] if all could.
    pub async fn freeze(&self) -> Result<ProcessFreeze, SandboxError> {
        if !self.has_filters() {
            return Err(SandboxError::NoFilters);
        }
        let mut bare = Self::bare(self.jobs.clone());
        bare.recorder.clone_from(&self.recorder);
        self.freezer.freeze(&bare).await
    }

    /// Waits for the thaw; none is frozen until the result is dropped. For changes of files by the host; only children that are never
    /// frozen may be started meanwhile.
    pub async fn change_files(&self) -> FileChanges {
        FileChanges(self.freezer.admit(false).await)
    }

    /// Call it when this process ends in order and everything it started has ended.
    pub fn end(&self) {
        if let Some(ledger) = &self.ledger {
            ledger.end();
        }
    }

    /// Returns what the running kernel can enforce of a [`crate::Policy`] that uses all of its fields.
    #[must_use]
    pub fn level(&self) -> Level {
        crate::Policy {
            bind_tcp: Some(Vec::new()),
            connect_tcp: Some(Vec::new()),
            hide: vec!["/".into()],
            calls: Some(crate::Calls::default()),
            ..Default::default()
        }
        .level()
    }

    /// Returns the Landlock version of the running kernel, 0 if it has none; for the doctor's report.
    #[must_use]
    pub fn landlock_abi(&self) -> u32 {
        level::kernel_abi()
    }

    /// Returns whether processes can have their own view of the file system, which hides files from them.
    #[must_use]
    pub fn has_views(&self) -> bool {
        support::has_views()
    }

    /// Returns whether processes can have their own PID namespace, so that nothing outlives them.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        support::has_numbers()
    }

    /// Returns whether connections can be decided about by address.
    #[must_use]
    pub fn has_connects(&self) -> bool {
        connects::is_possible()
    }

    /// Returns whether the kernel can filter system calls.
    #[must_use]
    pub fn has_filters(&self) -> bool {
        calls::is_possible()
    }

    /// Starts a process. Must be called within a tokio runtime with I/O. A dropped future leaves no process behind.
    ///
    /// The process has its own process group, dies with the host, and has exactly the environment given, no open files beyond its streams
    /// (and 3, if a channel was requested), and no core dumps.
    ///
    /// # Errors
    /// [`SandboxError::NotFound`] and [`SandboxError::Cwd`] for these causes; [`SandboxError::Forbidden`] if the machine's
    /// policy does not allow the program; [`SandboxError::Policy`] if the rules were refused; [`SandboxError::Watch`] if it
    /// cannot be watched; [`SandboxError::Spawn`] for everything else.
    pub async fn spawn(&self, mut spec: Spec) -> Result<Child, SandboxError> {
        self.allows(&spec).await?;
        let mut network = self.network.as_ref();
        if let (Some(sandbox), None) = (&self.sandbox, &spec.policy) {
            let own = sandbox.own.of(&spec.label).map(|own| {
                network = None;
                spec.env.extend(own.variables);
                spec.proxy_redirect = own.proxy_redirect;
                own.policy
            });
            spec.policy = Some(sandbox.policy(own, &spec.program).await?);
        }
        // A sandbox with its own connection rules, such as a plugin's, gets no more access by being started here.
        let ruled = |policy: &Policy| policy.connect_tcp.is_some();
        let lease = match network.filter(|_| !spec.policy.as_ref().is_some_and(ruled)) {
            Some(network) => Some(network.apply(&mut spec).await?),
            None => None,
        };
        let end = Instant::now() + WALK_TIMEOUT;
        let what = spec.label_or_name();
        spec.name_places();
        let never_frozen = spec.never_frozen;
        let is_command = spec.policy.as_ref().is_some_and(Policy::is_of_command);
        let _admitted = self.freezer.admit(never_frozen).await;
        let mut started = loop {
            let handed = Arc::new(spec);
            match self.hand_over(&handed).await {
                Ok(started) => break started,
                Err(NotStarted::Moved(error)) if Instant::now() < end => {
                    spec = renewed(Arc::unwrap_or_clone(handed), error).await?;
                }
                Err(NotStarted::Moved(error) | NotStarted::Failed(error)) => return Err(error),
            }
        };
        let hidden = started.hidden.take();
        let mut child = Child::from_started(started)?;
        let tree = (!never_frozen).then(|| Tree::of(&child, &what, is_command));
        self.freezer.add(tree);
        if let Some(lease) = &lease {
            lease.belongs_to(child.pid());
        }
        child.network = lease;
        if hidden.is_some() || !child.absent.is_empty() {
            let (pid, hidden) = (child.pid(), hidden.unwrap_or_default());
            let watched = hidden.ends(child.absent.clone(), child.killer(), what);
            watched.map_err(|source| SandboxError::Watch { pid, source })?;
        }
        Ok(child)
    }

    async fn allows(&self, spec: &Spec) -> Result<(), SandboxError> {
        let Some(forbids) = self.forbids.clone().filter(|it| it.has_programs()) else {
            return Ok(());
        };
        let program = find(spec)?;
        // It may check every installed program.
        let look = move || (forbids.program(&program), program);
        match tokio::task::spawn_blocking(look).await {
            Ok((None, _)) => Ok(()),
            Ok((Some(pattern), program)) => Err(SandboxError::Forbidden { program, pattern }),
            Err(_) => Err(SandboxError::Stopped),
        }
    }

    /// Makes one attempt on the spawning thread.
    async fn hand_over(&self, spec: &Arc<Spec>) -> Result<Started, NotStarted> {
        let (reply, answer) = oneshot::channel();
        let (ledger, recorder) = (self.ledger.clone(), self.recorder.clone());
        self.jobs
            .send(Job {
                spec: Arc::clone(spec),
                ledger,
                recorder,
                reply,
            })
            .map_err(|_| SandboxError::Stopped)?;
        answer.await.map_err(|_| SandboxError::Stopped)?
    }
}

/// Starts the thread that forks.
fn start_thread() -> Result<mpsc::Sender<Job>, SandboxError> {
    setup::reserve_channel_fd();
    own::restore_child_signal();
    let (jobs, receiver) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("spawner".into())
        .spawn(move || {
            // Before the first start: it creates a process and waits for it.
            connects::is_possible();
            support::has_numbers();
            receiver.into_iter().for_each(Job::carry_out);
        })
        .map_err(|source| SandboxError::Thread { source })?;
    Ok(jobs)
}

impl Job {
    /// Runs on the spawning thread.
    fn carry_out(self) {
        // The caller no longer waits: do not even start it.
        if self.reply.is_closed() {
            return;
        }
        let started = self.start();
        drop(self.reply.send(started));
    }

    fn start(&self) -> Result<Started, NotStarted> {
        let policy = self.spec.policy.as_ref();
        let lookups = &mut Lookups::default();
        let absent = policy.map(|policy| Absent::of(&policy.absent, policy.clear.clone(), lookups));
        if let (Some(absent), Some(ledger)) = (&absent, &self.ledger) {
            absent.record(ledger.folder());
        }
        let watched = policy.filter(|it| it.ends_uncovered);
        // The same lookups tell below what is masked.
        let hidden = watched.map(|it| Hidden::looked_up(&it.kept.covers().hide, &mut lookups.real));
        let mut started = start(&self.spec, &mut lookups.real)?;
        started.hidden = hidden;
        if let Some(absent) = absent {
            started.absent = absent.clone();
            started.process.keeps_free(absent);
        }
        if let Some(recorder) = &self.recorder {
            recorder(&ProcessStart {
                label: self.spec.label_or_name(),
                program: self.spec.program.display().to_string(),
                pid: started.process.pid(),
                level: started.level,
                open: policy.is_some_and(Policy::is_open),
            });
        }
        if let Some(ledger) = &self.ledger {
            let label = self.spec.label_or_name();
            started.process.enter(ledger.clone(), &label);
        }
        Ok(started)
    }
}

/// Repeats the search for paths to mask outside the spawning thread: a walk takes time, and all process starts wait for that thread.
async fn renewed(mut spec: Spec, error: SandboxError) -> Result<Spec, SandboxError> {
    let looked = tokio::task::spawn_blocking(move || {
        let renewed = match &mut spec.policy {
            Some(policy) => policy.kept.renew()?,
            None => false,
        };
        if renewed { Ok(spec) } else { Err(error) }
    });
    looked.await.map_err(|_| SandboxError::Stopped)?
}

impl DefaultSandbox {
    /// Returns the sandbox of a process: its own, or the usual one, with what is masked.
    async fn policy(&self, own: Option<Policy>, program: &Path) -> Result<Policy, SandboxError> {
        let (base, covers) = (self.base.clone(), Arc::clone(&self.covers));
        let made = tokio::task::spawn_blocking(move || -> Result<Policy, SandboxError> {
            let mut policy = match (own, base) {
                (Some(own), _) => own,
                (None, Some(base)) => base()?,
                (None, None) => Policy::open(),
            };
            policy.kept = CoverWalk::new(covers()?, covers);
            Ok(policy)
        });
        let mut policy = made.await.map_err(|_| SandboxError::Stopped)??;
        policy.ends_uncovered = true;
        if self.strict && policy.level() < Level::Full {
            return Err(SandboxError::Strict {
                program: program.to_owned(),
            });
        }
        Ok(policy)
    }
}
