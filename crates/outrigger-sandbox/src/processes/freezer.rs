//! The freezer of the processes of a host, after that of cgroups: while a command that the user approved runs outside its sandbox, no
//! other process runs, so that none changes the files of that command between the user's look at them and its end.
//!
//! Every running process is stopped (`SIGSTOP`) and new ones are not started until the thaw. A stopped process cannot wake itself: the
//! system calls by which the kernel would send it `SIGCONT` are refused in every sandbox (`seccomp/calls`), one that has a timer of that
//! signal does not count as stopped, and those that could send it are stopped too.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use outrigger_files::sync::lock;
use rustix::process::Signal;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::error::Elapsed;

use crate::processes::procfs::{self, Stat};
use crate::processes::{tag, tree};
use crate::spawn::child::Child;
use crate::spawn::process::Process;

/// How often processes are looked for that still run, and the pause between two looks: one may be in the kernel for a moment.
const ROUNDS: usize = 200;
/// From this round on a process that waits in the kernel counts as stopped: one that has started another waits there until that one runs its
/// program, which is stopped as well.
const SETTLED: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);

/// The processes of a [`crate::Spawner`] and its clones, and whether they are frozen.
#[derive(Clone, Default)]
pub struct Freezer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Held for reading while a process is started, for writing while they are frozen.
    gate: Arc<RwLock<()>>,
    /// How often they have been frozen.
    count: AtomicU64,
    running: std::sync::Mutex<Vec<Weak<Process>>>,
}

/// The processes are frozen until it is dropped.
pub struct ProcessFreeze {
    stopped: Vec<Stat>,
    _gate: OwnedRwLockWriteGuard<()>,
}

impl fmt::Debug for Freezer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Freezer").finish_non_exhaustive()
    }
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

    /// Adds a process that is frozen with the others, unless it never is.
    pub(crate) fn add(&self, child: &Child, never_frozen: bool) {
        if never_frozen {
            return;
        }
        let mut running = lock(&self.0.running);
        running.retain(|it| it.strong_count() > 0);
        running.push(Arc::downgrade(child.process()));
    }

    /// Returns whether they are frozen now.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.0.gate.try_read().is_err()
    }

    /// Returns how often they have been frozen.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Waits until they are not frozen.
    pub async fn thawed(&self) {
        drop(self.0.gate.read().await);
    }

    /// Waits for `work`, which depends on one of the processes. The time in which they are frozen does not count: after that it has the
    /// whole `limit` once more.
    ///
    /// # Errors
    /// [`Elapsed`] after the limit.
    pub async fn timeout<F: Future>(&self, limit: Duration, work: F) -> Result<F::Output, Elapsed> {
        let mut work = std::pin::pin!(work);
        loop {
            let count = self.0.count.load(Ordering::SeqCst);
            let late = match tokio::time::timeout(limit, &mut work).await {
                Ok(done) => return Ok(done),
                Err(late) => late,
            };
            if count == self.0.count.load(Ordering::SeqCst) && self.0.gate.try_read().is_ok() {
                return Err(late);
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = self.thawed() => {}
            }
        }
    }

    /// Freezes them all; `None` if one of them cannot be stopped, in which case all of them run on.
    pub(crate) async fn freeze(&self) -> Option<ProcessFreeze> {
        let gate = Arc::clone(&self.0.gate).write_owned().await;
        self.0.count.fetch_add(1, Ordering::SeqCst);
        let running: Vec<Arc<Process>> = lock(&self.0.running)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let stop = move || {
            let mut all = ProcessFreeze {
                stopped: Vec::new(),
                _gate: gate,
            };
            let complete = all.stop(&running);
            complete.then_some(all)
        };
        tokio::task::spawn_blocking(stop).await.ok().flatten()
    }
}

impl ProcessFreeze {
    /// Stops all processes of these trees, and returns whether none of them runs.
    fn stop(&mut self, trees: &[Arc<Process>]) -> bool {
        let mut known: HashMap<(u32, u64), Stat> = HashMap::new();
        for round in 0..ROUNDS {
            let all = procfs::all();
            let members: Vec<Stat> = trees
                .iter()
                .flat_map(|it| tree::members(it.root(), &all, tag::of))
                .collect();
            let moving: Vec<Stat> = members
                .iter()
                .filter(|it| procfs::runs(it.pid, round >= SETTLED))
                .copied()
                .collect();
            if moving.is_empty() {
                return !members
                    .iter()
                    .any(|it| procfs::has_timer(it.pid, Signal::CONT));
            }
            for member in moving {
                tree::signal(&member, Signal::STOP);
                if known.insert((member.pid, member.start), member).is_none() {
                    self.stopped.push(member);
                }
            }
            thread::sleep(PAUSE);
        }
        false
    }
}

impl Drop for ProcessFreeze {
    fn drop(&mut self) {
        for member in &self.stopped {
            tree::signal(member, Signal::CONT);
        }
    }
}
