//! The one thread that starts processes, and the handle to it.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Instant;
use std::{io, thread};

use seccompiler::BpfProgram;
use tokio::sync::oneshot;

use crate::calls;
use crate::child::Child;
use crate::connects;
use crate::covers::{CoversFn, Kept, PATIENCE};
use crate::error::SandboxError;
use crate::led::Led;
use crate::ledger::Ledger;
use crate::own_boxes::OwnBoxes;
use crate::policy::{self, Level, Policy};
use crate::process::Process;
use crate::setup::{self, CHANNEL_FD, RETRY, Setup};
use crate::spec::{Spec, Stdio};
use crate::terminal;
use crate::view::{self, View};
use crate::which::{is_executable, which};

/// How often a start is tried again when another thread took file descriptor 3 meanwhile.
const ATTEMPTS: usize = 8;

/// A handle to the spawning thread; cheap to clone. All handles of a host share one thread, which never ends: the
/// parent-death signal of every process hangs on it.
#[derive(Clone)]
pub struct Spawner {
    jobs: mpsc::Sender<Job>,
    ledger: Option<Ledger>,
    recorder: Option<StartFn>,
    boxed: Option<Boxed>,
    led: Option<Arc<Led>>,
    forbids: Option<Arc<dyn Forbids>>,
}

/// What the policy of the machine forbids, whoever opens a file or starts a program. Answers are the patterns that say so.
pub trait Forbids: Send + Sync {
    /// A file or folder by its absolute path; its links may have been followed or not.
    fn file(&self, path: &Path) -> Option<String>;
    /// A program, by name or by the path of its file.
    fn program(&self, program: &Path) -> Option<String>;
}

#[derive(Clone)]
struct Boxed {
    covers: CoversFn,
    strict: bool,
    own: OwnBoxes,
}

impl std::fmt::Debug for Spawner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spawner")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

/// Told of every process that is started. Called on the spawning thread: it must not wait.
pub type StartFn = Arc<dyn Fn(&ProcessStart) + Send + Sync>;

/// A process that was started, for the audit (C13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStart {
    /// What it is for.
    pub label: String,
    /// The program's file.
    pub program: String,
    /// Its number.
    pub pid: u32,
    /// How much of its box the kernel enforces; `None` where no box was asked for.
    pub level: Option<Level>,
    /// The box leaves everything that is not covered.
    pub open: bool,
}

struct Job {
    spec: Spec,
    ledger: Option<Ledger>,
    recorder: Option<StartFn>,
    reply: oneshot::Sender<Result<Started, SandboxError>>,
}

/// A process and the host's ends of its streams, not yet bound to a runtime. Dropping it kills the process, so a
/// caller that gave up waiting leaves nothing behind.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) channel: Option<UnixStream>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) level: Option<Level>,
}

impl Spawner {
    /// Starts the spawning thread, or joins the one that runs.
    ///
    /// # Errors
    /// [`SandboxError::Thread`] when no thread can be started.
    pub fn new() -> Result<Self, SandboxError> {
        static JOBS: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
        if let Some(jobs) = JOBS.get() {
            return Ok(Self {
                jobs: jobs.clone(),
                ledger: None,
                recorder: None,
                boxed: None,
                led: None,
                forbids: None,
            });
        }
        setup::reserve_channel_fd();
        restore_child_signal();
        let (jobs, receiver) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("spawner".into())
            .spawn(move || {
                for Job {
                    mut spec,
                    ledger,
                    recorder,
                    reply,
                } in receiver
                {
                    // Nobody waits any more: do not even start it.
                    if reply.is_closed() {
                        continue;
                    }
                    let mut started = start(&mut spec);
                    if let (Ok(started), Some(recorder)) = (&started, recorder) {
                        recorder(&ProcessStart {
                            label: spec.label_or_name(),
                            program: spec.program.display().to_string(),
                            pid: started.process.pid(),
                            level: started.level,
                            open: spec.policy.as_ref().is_some_and(Policy::is_open),
                        });
                    }
                    if let (Ok(started), Some(ledger)) = (&mut started, ledger) {
                        started.process.enter(ledger, &spec.label_or_name());
                    }
                    drop(reply.send(started));
                }
            })
            .map_err(|source| SandboxError::Thread { source })?;
        // Two first callers at once: the loser's thread ends with its sender, before it started anything.
        let jobs = JOBS.get_or_init(|| jobs).clone();
        Ok(Self {
            jobs,
            ledger: None,
            recorder: None,
            boxed: None,
            led: None,
            forbids: None,
        })
    }

    /// A handle that keeps from every process what `covers` finds, where the process is not in a box already. `strict`: one
    /// from which the system cannot keep all of it is not started.
    #[must_use]
    pub fn with_covers(mut self, covers: CoversFn, strict: bool) -> Self {
        let own = OwnBoxes::default();
        self.boxed = Some(Boxed {
            covers,
            strict,
            own,
        });
        self
    }

    /// The same, where some processes have a narrower box, by their label.
    #[must_use]
    pub fn with_boxes(mut self, own: OwnBoxes) -> Self {
        if let Some(boxed) = &mut self.boxed {
            boxed.own = own;
        }
        self
    }

    /// A handle whose processes reach these hosts and nothing else.
    #[must_use]
    pub fn with_hosts(mut self, led: Arc<Led>) -> Self {
        self.led = Some(led);
        self
    }

    /// A handle that starts none of the programs that are forbidden.
    #[must_use]
    pub fn with_forbidden(mut self, forbids: Arc<dyn Forbids>) -> Self {
        self.forbids = Some(forbids);
        self
    }

    /// What is forbidden to processes of this handle, and to whoever works for the same people.
    #[must_use]
    pub fn forbids(&self) -> Option<&dyn Forbids> {
        self.forbids.as_deref()
    }

    /// A handle that tells of every process it starts.
    #[must_use]
    pub fn with_recorder(mut self, recorder: StartFn) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// A handle that writes every process it starts into `ledger`, until the process has been reaped.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// What the running kernel offers for a [`crate::Policy`] that uses all of its fields.
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

    /// The Landlock version of the running kernel, 0 when it has none; for the doctor's report.
    #[must_use]
    pub fn landlock_abi(&self) -> u32 {
        policy::kernel_abi()
    }

    /// Whether processes can have a view of the file system of their own, for what is hidden from them.
    #[must_use]
    pub fn has_views(&self) -> bool {
        view::is_possible()
    }

    /// Whether a process's connections can be decided about by address.
    #[must_use]
    pub fn has_connects(&self) -> bool {
        connects::is_possible()
    }

    /// Whether the kernel can filter system calls.
    #[must_use]
    pub fn has_filters(&self) -> bool {
        calls::is_possible()
    }

    /// Starts a process. Must be called within a tokio runtime with I/O. A dropped future leaves no process behind.
    ///
    /// The process has its own process group, dies with the host, has exactly the environment given, no open file
    /// beyond its streams (and 3, if a channel was asked for), and no core dumps.
    ///
    /// # Errors
    /// [`SandboxError::NotFound`] and [`SandboxError::Cwd`] for what can be named; [`SandboxError::Forbidden`] for what the
    /// policy of the machine does not let run; [`SandboxError::Spawn`] for the rest; [`SandboxError::Policy`] when the rules were refused; [`SandboxError::Watch`] when it cannot be watched.
    pub async fn spawn(&self, mut spec: Spec) -> Result<Child, SandboxError> {
        self.allows(&spec)?;
        if let (Some(boxed), None) = (&self.boxed, &spec.policy) {
            let own = boxed.own.of(&spec.label);
            let policy = match own {
                Some(own) => {
                    spec.env.extend(own.variables);
                    spec.door = own.door;
                    own.policy
                }
                None => Policy::open(),
            };
            spec.policy = Some(boxed.policy(policy, &spec.program).await?);
        }
        let way = match &self.led {
            Some(led) => Some(led.lead(&mut spec).await?),
            None => None,
        };
        let (reply, answer) = oneshot::channel();
        let (ledger, recorder) = (self.ledger.clone(), self.recorder.clone());
        self.jobs
            .send(Job {
                spec,
                ledger,
                recorder,
                reply,
            })
            .map_err(|_| SandboxError::Stopped)?;
        let started = answer.await.map_err(|_| SandboxError::Stopped)??;
        let mut child = Child::from_started(started)?;
        if let Some(way) = &way {
            way.belongs_to(child.pid());
        }
        child.way = way;
        Ok(child)
    }
}

impl Spawner {
    fn allows(&self, spec: &Spec) -> Result<(), SandboxError> {
        let Some(forbids) = &self.forbids else {
            return Ok(());
        };
        let program = find(spec)?;
        match forbids.program(&program) {
            Some(pattern) => Err(SandboxError::Forbidden { program, pattern }),
            None => Ok(()),
        }
    }
}

impl Boxed {
    async fn policy(&self, mut policy: Policy, program: &Path) -> Result<Policy, SandboxError> {
        let covers = Arc::clone(&self.covers);
        let found = tokio::task::spawn_blocking(move || covers()).await;
        let found = found.map_err(|_| SandboxError::Stopped)??;
        policy.kept = Kept::new(found, Arc::clone(&self.covers));
        if self.strict && policy.level() < Level::Full {
            return Err(SandboxError::Strict {
                program: program.to_owned(),
            });
        }
        Ok(policy)
    }
}

/// Keeps processes of this user from looking into the host: its memory, environment and open files hold keys, and `/proc`
/// has to stay readable in a box (Bun does not start without it). No core dumps of it, and no debugger, either.
pub fn hide_host() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "other processes of this user can look into this one");
    }
}

/// A host that was itself started with SIGCHLD ignored would lose its children's exit codes: the kernel reaps them.
#[expect(
    unsafe_code,
    reason = "reading and setting a signal's disposition has no safe wrapper"
)]
fn restore_child_signal() {
    // SAFETY: a null new action only reads into a local, for which zero is a valid value; SIG_DFL runs no handler.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// Runs on the spawning thread. What is to be covered is looked for again as long as it is moved about.
fn start(spec: &mut Spec) -> Result<Started, SandboxError> {
    check_cwd(spec)?;
    let program = find(spec)?;
    let failed = |source| SandboxError::Spawn {
        program: program.clone(),
        source,
    };
    let end = Instant::now() + PATIENCE;
    loop {
        let error = match attempts(spec, &program)? {
            Ok(started) => return Ok(started),
            Err(error) => error,
        };
        let moved = error.raw_os_error() == Some(view::MOVED) && Instant::now() < end;
        let renewed = match spec.policy.as_mut().filter(|_| moved) {
            Some(policy) => policy.kept.renew()?,
            None => false,
        };
        if !renewed {
            return Err(failed(error));
        }
    }
}

/// The outer error is final.
fn attempts(spec: &Spec, program: &Path) -> Result<io::Result<Started>, SandboxError> {
    for _ in 1..ATTEMPTS {
        match try_start(spec, program)? {
            Err(error) if error.raw_os_error() == Some(RETRY) => setup::reserve_channel_fd(),
            other => return Ok(other),
        }
    }
    try_start(spec, program)
}

/// The outer error is final, the inner one is that of fork, setup or exec.
fn try_start(spec: &Spec, program: &Path) -> Result<io::Result<Started>, SandboxError> {
    let ruleset = match &spec.policy {
        Some(policy) => policy
            .ruleset(program)
            .map_err(|source| SandboxError::Policy {
                program: program.to_owned(),
                source: Box::new(source),
            })?,
        None => None,
    };
    let level = spec.policy.as_ref().map(Policy::level);
    Ok(fork(spec, program, ruleset.as_ref(), level))
}

/// The parts of a policy that are not Landlock's, as far as the kernel has them.
fn beyond_files(spec: &Spec) -> io::Result<(Option<View>, Option<BpfProgram>)> {
    let Some(policy) = &spec.policy else {
        return Ok((None, None));
    };
    let view = match view::is_possible() {
        true => View::of(policy, &spec.cwd)?,
        false => None,
    };
    let filter = match policy.calls {
        Some(calls) if calls::is_possible() => {
            Some(calls::filter(calls, policy.connect_tcp.is_some())?)
        }
        _ => None,
    };
    Ok((view, filter))
}

/// What it may connect to and where it may listen, where that is ruled and the kernel can leave it to us.
fn connect_rules(spec: &Spec) -> Option<connects::Rules> {
    let policy = spec.policy.as_ref()?;
    (policy.rules_tcp() && connects::is_possible()).then(|| connects::Rules {
        connect: policy.connect_tcp.clone(),
        bind: policy.bind_tcp.clone(),
        door: spec.door.clone(),
        abstract_sockets: policy.reach_out,
    })
}

fn fork(
    spec: &Spec,
    program: &Path,
    ruleset: Option<&OwnedFd>,
    level: Option<Level>,
) -> io::Result<Started> {
    let (host_end, child_end) = match spec.channel {
        true => {
            setup::reserve_channel_fd();
            UnixStream::pair().map(|(host, child)| (Some(host), Some(child)))?
        }
        false => (None, None),
    };
    let (terminal, process_end) = match spec.terminal {
        Some(size) => {
            let (host, process) = terminal::pair(size)?;
            (Some(host), Some(process))
        }
        None => (None, None),
    };
    let tag = setup::fresh_tag();
    let (view, filter) = beyond_files(spec)?;
    let (watched, connects) = match connect_rules(spec) {
        Some(rules) => {
            let (ours, childs) = connects::pair()?;
            (Some((ours, rules)), Some(childs))
        }
        None => (None, None),
    };
    let setup = Setup {
        host: std::process::id().cast_signed(),
        data: spec.limits.data,
        nofile: spec.limits.nofile,
        files: crate::files::of_children(),
        tag,
        channel: child_end
            .as_ref()
            .map(|end| (end.as_raw_fd(), setup::file_id(CHANNEL_FD))),
        terminal: terminal.is_some(),
        own_terminals: terminal.is_none() && has_own_terminals(spec),
        no_new_privs: spec.no_new_privs,
        confined: spec.policy.is_some(),
        ruleset: ruleset.map(|ruleset| ruleset.as_raw_fd()),
        view,
        filter,
        connects: connects.as_ref().map(|end| end.as_raw_fd()),
    };
    let mut child = command(spec, program, setup, process_end)?.spawn()?;
    drop(child_end);
    let process = Process::adopt(child.id(), tag)?;
    if let Some((ours, rules)) = watched {
        // Its first connection waits until this is there.
        connects::watch(connects::receive(&ours)?, rules)?;
    }
    Ok(Started {
        process,
        stdin: child.stdin.take().map(OwnedFd::from),
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
        channel: host_end,
        terminal,
        level,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "invariant 4: this is the one place"
)]
#[expect(
    unsafe_code,
    reason = "pre_exec: parent-death signal, limits and Landlock are set by the child itself"
)]
fn command(
    spec: &Spec,
    program: &Path,
    setup: Setup,
    terminal: Option<OwnedFd>,
) -> io::Result<Command> {
    let mut command = Command::new(program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd);
    match terminal {
        // A leader of a process group could not begin a session; the session's first group is its own.
        Some(end) => command
            .stdin(end.try_clone()?)
            .stdout(end.try_clone()?)
            .stderr(end),
        None => command
            .stdin(stdio(spec.stdin))
            .stdout(stdio(spec.stdout))
            .stderr(stdio(spec.stderr)),
    };
    if !setup.terminal && !setup.own_terminals {
        command.process_group(0);
    }
    if program != spec.program {
        // A program found on PATH is told the name it was called by, as a shell would.
        command.arg0(&spec.program);
    }
    // SAFETY: `Setup::apply` makes async-signal-safe calls only, on what was prepared; the descriptors behind it are
    // kept open by the caller until `spawn` has returned.
    unsafe {
        command.pre_exec(move || setup.apply());
    }
    Ok(command)
}

/// Whether it begins a session of its own, for terminals of its own.
fn has_own_terminals(spec: &Spec) -> bool {
    spec.policy
        .as_ref()
        .is_some_and(|policy| policy.own_terminals)
}

fn stdio(stdio: Stdio) -> std::process::Stdio {
    match stdio {
        Stdio::Null => std::process::Stdio::null(),
        Stdio::Pipe => std::process::Stdio::piped(),
    }
}

fn check_cwd(spec: &Spec) -> Result<(), SandboxError> {
    let cwd = |source| SandboxError::Cwd {
        program: spec.program.clone(),
        cwd: spec.cwd.clone(),
        source,
    };
    let meta = std::fs::metadata(&spec.cwd).map_err(cwd)?;
    if meta.is_dir() {
        Ok(())
    } else {
        Err(cwd(io::ErrorKind::NotADirectory.into()))
    }
}

/// The program's absolute path, so that "not found" is told apart from every other failure of exec.
fn find(spec: &Spec) -> Result<PathBuf, SandboxError> {
    let not_found = |search: &OsStr| SandboxError::NotFound {
        program: spec.program.clone(),
        search: search.to_owned(),
    };
    if spec.program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let file = spec.cwd.join(&spec.program);
        // A file that is there but not executable is exec's to refuse (EACCES), with a better message.
        return if is_executable(&file) || file.is_file() {
            Ok(file)
        } else {
            Err(not_found(spec.cwd.as_os_str()))
        };
    }
    let path = spec.var_value("PATH").unwrap_or_default();
    which(&spec.program, path).ok_or_else(|| not_found(path))
}
