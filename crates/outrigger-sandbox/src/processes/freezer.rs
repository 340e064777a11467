//! The freezer of the processes of a host, after that of cgroups: while a command that the user approved runs outside its sandbox, no
//! other process runs, so that none changes the files of that command between the user's look at them and its end.
//!
//! Every running process is stopped (`SIGSTOP`) and new ones are not started until the thaw. A stopped process cannot wake itself: the
//! system calls by which the kernel would send it `SIGCONT` are refused in every sandbox (`seccomp/calls`), one that has a timer of that
//! signal does not count as stopped, and those that could send it are stopped too.
//!
//! The time of processes stands still meanwhile ([`process_time`](crate::process_time)). If the host is killed, they end with it or run on
//! ([`Waker`]).

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_stdx::sync::lock;
use rustix::process::Signal;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::error::SandboxError;
use crate::processes::locks::{self, LockHolder};
use crate::processes::process_time::Pause;
use crate::processes::procfs::{self, Stat};
use crate::processes::waker::Waker;
use crate::processes::{tag, tree};
use crate::spawn::child::{Child, Killer};
use crate::spawn::process::Process;
use crate::spawn::spawner::Spawner;

/// How often processes are looked for that still run, and the pause between two looks: one may be in the kernel for a moment.
const ROUNDS: usize = 200;
/// From this round on a process that waits in the kernel counts as stopped: one that has started another waits there until that one runs its
/// program, which is stopped as well.
const SETTLED: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);
/// How long a command that holds a lock may go on before it is frozen: those of git and of package managers are short.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it runs between two looks.
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// A process that waits for the same lock at two looks in a row will wait for ever.
const BLOCK_INTERVAL: Duration = Duration::from_secs(2);

/// The processes of a [`Spawner`] and its clones.
#[derive(Clone, Default)]
pub(crate) struct Freezer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Held for reading while a process is started, for writing while they are frozen.
    gate: Arc<RwLock<()>>,
    running: std::sync::Mutex<Vec<Tree>>,
}

/// A process, with everything that it starts.
#[derive(Clone)]
pub(crate) struct Tree {
    process: Weak<Process>,
    label: Arc<str>,
    is_command: bool,
}

/// No process is frozen until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct FileChanges(
    #[expect(dead_code, reason = "held until it is dropped")]
    pub(crate)  Option<OwnedRwLockReadGuard<()>>,
);

/// The processes are frozen until it is dropped.
pub struct ProcessFreeze {
    stopped: Vec<Frozen>,
    waker: Option<Waker>,
    _pause: Pause,
    _gate: OwnedRwLockWriteGuard<()>,
}

#[derive(Clone)]
struct Frozen {
    stat: Stat,
    /// That of its tree.
    label: Arc<str>,
    is_command: bool,
}

impl fmt::Debug for ProcessFreeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopped = self.stopped.len();
        f.debug_struct("ProcessFreeze")
            .field("stopped", &stopped)
            .finish_non_exhaustive()
    }
}

impl Freezer {
    /// Waits until a process may be started, unless it is never frozen; none are frozen while the guard is held.
    pub(crate) async fn admit(&self, never_frozen: bool) -> Option<OwnedRwLockReadGuard<()>> {
        if never_frozen {
            return None;
        }
        Some(Arc::clone(&self.0.gate).read_owned().await)
    }

    /// Adds a process that is frozen with the others.
    pub(crate) fn add(&self, tree: Option<Tree>) {
        let mut running = lock(&self.0.running);
        running.retain(|it| it.process.strong_count() > 0);
        running.extend(tree);
    }

    /// Freezes them all, or none of them. `spawner` starts processes without a sandbox.
    pub(crate) async fn freeze(&self, spawner: &Spawner) -> Result<ProcessFreeze, SandboxError> {
        let gate = Arc::clone(&self.0.gate).write_owned().await;
        let pause = Pause::begin();
        let trees = lock(&self.0.running).clone();
        let waker = if trees.iter().any(Tree::outlives_host) {
            Some(Waker::start(spawner).await?)
        } else {
            None
        };
        let stop = move || {
            let mut all = ProcessFreeze {
                stopped: Vec::new(),
                waker,
                _pause: pause,
                _gate: gate,
            };
            all.stop_without_locks(&trees).map(|()| all)
        };
        let stopped = tokio::task::spawn_blocking(stop).await;
        stopped.map_err(|_| SandboxError::Stopped)?
    }
}

impl Tree {
    pub(crate) fn of(child: &Child, label: &str, is_command: bool) -> Self {
        Self {
            process: Arc::downgrade(child.process()),
            label: label.into(),
            is_command,
        }
    }

    /// Returns whether some of it may run on when the host is killed.
    fn outlives_host(&self) -> bool {
        let process = self.process.upgrade();
        process.is_some_and(|it| !it.is_namespace())
    }

    fn members(&self, all: &[Stat]) -> Vec<Frozen> {
        let Some(process) = self.process.upgrade() else {
            return Vec::new();
        };
        let frozen = |stat| Frozen {
            stat,
            label: Arc::clone(&self.label),
            is_command: self.is_command,
        };
        let members = tree::members(process.root(), all, tag::of);
        members.into_iter().map(frozen).collect()
    }
}

impl Frozen {
    fn not_frozen(&self, why: &'static str) -> SandboxError {
        SandboxError::NotFrozen {
            name: procfs::name(self.stat.pid),
            pid: self.stat.pid,
            label: self.label.to_string(),
            why,
        }
    }

    fn locks(&self, shared: bool) -> Vec<LockHolder> {
        locks::of(self.stat.pid, &self.label, shared)
    }
}

impl ProcessFreeze {
    /// Stops all processes of these trees. A command that holds a lock first gets the time to release it: it would be kept until the thaw.
    fn stop_without_locks(&mut self, trees: &[Tree]) -> Result<(), SandboxError> {
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            self.stop(trees)?;
            let holds = |it: &Frozen| it.is_command && !it.locks(false).is_empty();
            if !self.stopped.iter().any(holds) || Instant::now() >= end {
                return Ok(());
            }
            self.thaw();
            thread::sleep(LOCK_PAUSE);
        }
    }

    fn stop(&mut self, trees: &[Tree]) -> Result<(), SandboxError> {
        let mut known: HashSet<(u32, u64)> = HashSet::new();
        let mut moving: Vec<Frozen> = Vec::new();
        for round in 0..ROUNDS {
            let all = procfs::all();
            let members: Vec<Frozen> = trees.iter().flat_map(|it| it.members(&all)).collect();
            let runs = |it: &&Frozen| procfs::runs(it.stat.pid, round >= SETTLED);
            moving = members.iter().filter(runs).cloned().collect();
            if moving.is_empty() {
                let wakes = |it: &&Frozen| procfs::has_timer(it.stat.pid, Signal::CONT);
                return match members.iter().find(wakes) {
                    Some(it) => Err(it.not_frozen("it has a timer that would wake it")),
                    None => Ok(()),
                };
            }
            for member in &moving {
                let stat = member.stat;
                let is_new = known.insert((stat.pid, stat.start));
                if let Some(waker) = self.waker.as_mut().filter(|_| is_new) {
                    waker.add(stat.pid);
                }
                tree::signal(&stat, Signal::STOP);
                if is_new {
                    self.stopped.push(member.clone());
                }
            }
            thread::sleep(PAUSE);
        }
        let left = moving.first();
        left.map_or(Ok(()), |it| Err(it.not_frozen("it does not stop")))
    }

    fn thaw(&mut self) {
        for member in self.stopped.drain(..) {
            tree::signal(&member.stat, Signal::CONT);
        }
    }

    /// Returns the locks that frozen processes hold for themselves, and their open lock files. Blocking: reads `/proc`.
    #[must_use]
    pub fn locks(&self) -> Vec<LockHolder> {
        self.stopped.iter().flat_map(|it| it.locks(false)).collect()
    }

    /// Completes once a command that runs meanwhile waits for a lock that a frozen process holds: both would wait for each other.
    pub async fn blocks(&self, command: &Killer) -> LockHolder {
        let mut before = None;
        loop {
            tokio::time::sleep(BLOCK_INTERVAL).await;
            let now = self.blocking(command);
            match now {
                Some(holder) if before.as_ref() == Some(&holder) => return holder,
                now => before = now,
            }
        }
    }

    fn blocking(&self, command: &Killer) -> Option<LockHolder> {
        let tree = tree::members(command.root()?, &procfs::all(), tag::of);
        let waiting = tree.iter().flat_map(|it| locks::awaited_by(it.pid));
        let awaited = waiting.collect::<Vec<_>>();
        if awaited.is_empty() {
            return None;
        }
        let mut held = self.stopped.iter().flat_map(|it| it.locks(true));
        held.find(|it| it.lock.is_some_and(|lock| awaited.contains(&lock)))
    }
}

impl Drop for ProcessFreeze {
    fn drop(&mut self) {
        self.thaw();
    }
}
