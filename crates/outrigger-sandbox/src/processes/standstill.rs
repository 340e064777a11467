//! A time in which nothing that this host has started goes on, except for what the user lets run then: nobody may change the files of a
//! command between the user's look at them and its end.
//!
//! Every running process is stopped (`SIGSTOP`) and what is to be started waits. A stopped process cannot wake itself: the system calls by
//! which the kernel would send it `SIGCONT` are refused in every sandbox (`seccomp/calls`), one that has a timer of that signal is not
//! taken for stopped, and those that could send it are stopped too.

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

/// How often processes are looked for that still go on, and the pause between two looks: one may be in the kernel for a moment.
const ROUNDS: usize = 200;
/// From this round on a process that waits in the kernel counts as stopped: one that has started another waits there until that one runs its
/// program, which is stopped as well.
const SETTLED: usize = 50;
const PAUSE: Duration = Duration::from_millis(5);

/// The processes of a [`crate::Spawner`] and its clones, and whether they are stopped.
#[derive(Clone, Default)]
pub struct Stillness(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Held for reading while a process is started, for writing while they are stopped.
    gate: Arc<RwLock<()>>,
    /// How often they have been stopped.
    begun: AtomicU64,
    running: std::sync::Mutex<Vec<Weak<Process>>>,
}

/// The processes are stopped until it is dropped.
pub struct Standstill {
    stopped: Vec<Stat>,
    _gate: OwnedRwLockWriteGuard<()>,
}

impl fmt::Debug for Stillness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stillness").finish_non_exhaustive()
    }
}

impl fmt::Debug for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stopped = self.stopped.len();
        f.debug_struct("Standstill")
            .field("stopped", &stopped)
            .finish_non_exhaustive()
    }
}

impl Stillness {
    /// Waits until processes may be started, unless one goes on whatever happens; none are stopped while the guard is held.
    pub(crate) async fn starts(&self, goes_on: bool) -> Option<OwnedRwLockReadGuard<()>> {
        if goes_on {
            return None;
        }
        Some(Arc::clone(&self.0.gate).read_owned().await)
    }

    /// Adds a process that is stopped with the others, unless it goes on.
    pub(crate) fn includes(&self, child: &Child, goes_on: bool) {
        if goes_on {
            return;
        }
        let mut running = lock(&self.0.running);
        running.retain(|it| it.strong_count() > 0);
        running.push(Arc::downgrade(child.process()));
    }

    /// Returns whether they are stopped now.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.0.gate.try_read().is_err()
    }

    /// Returns how often they have been stopped.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.begun.load(Ordering::SeqCst)
    }

    /// Waits until they go on.
    pub async fn over(&self) {
        drop(self.0.gate.read().await);
    }

    /// Waits for `work`, which depends on one of the processes. The time in which they are stopped does not count: then it has the whole
    /// `limit` once more.
    ///
    /// # Errors
    /// [`Elapsed`] after the limit.
    pub async fn timeout<F: Future>(&self, limit: Duration, work: F) -> Result<F::Output, Elapsed> {
        let mut work = std::pin::pin!(work);
        loop {
            let begun = self.0.begun.load(Ordering::SeqCst);
            let late = match tokio::time::timeout(limit, &mut work).await {
                Ok(done) => return Ok(done),
                Err(late) => late,
            };
            if begun == self.0.begun.load(Ordering::SeqCst) && self.0.gate.try_read().is_ok() {
                return Err(late);
            }
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = self.over() => {}
            }
        }
    }

    /// Stops them all; `None` if one of them cannot be stopped, in which case they all go on.
    pub(crate) async fn begin(&self) -> Option<Standstill> {
        let gate = Arc::clone(&self.0.gate).write_owned().await;
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        let running: Vec<Arc<Process>> = lock(&self.0.running)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let stop = move || {
            let mut all = Standstill {
                stopped: Vec::new(),
                _gate: gate,
            };
            let stood = all.stop(&running);
            stood.then_some(all)
        };
        tokio::task::spawn_blocking(stop).await.ok().flatten()
    }
}

impl Standstill {
    /// Stops all processes of these trees, and returns whether none goes on.
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
                .filter(|it| procfs::goes_on(it.pid, round >= SETTLED))
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

impl Drop for Standstill {
    fn drop(&mut self) {
        for member in &self.stopped {
            tree::signal(member, Signal::CONT);
        }
    }
}
