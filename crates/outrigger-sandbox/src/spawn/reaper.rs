//! Reaps killed processes that have not ended yet, on a separate thread, and undoes their forbidden changes.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use outrigger_stdx::sync::lock;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::fs::absent::Absent;
use crate::processes::ledger::Ledger;

/// How often the reaper polls processes that have not ended yet: soon at first, since most end at once.
const REAP_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The number of processes not reaped yet.
static WAITING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Waits, for at most `limit`, until every dropped process has ended and its changes are undone; returns whether that is so. A program
/// that exits earlier skips this. Blocking.
pub fn wait_for_dropped(limit: Duration) -> bool {
    let (waiting, changed) = &WAITING;
    let waiting = lock(waiting);
    let waited = changed.wait_timeout_while(waiting, limit, |count| *count > 0);
    let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
    *waiting == 0
}

/// Counts one process to wait for, until it is dropped.
struct Counted;

impl Counted {
    fn new() -> Self {
        *lock(&WAITING.0) += 1;
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let (waiting, changed) = &WAITING;
        *lock(waiting) -= 1;
        changed.notify_all();
    }
}

/// A killed process that is to be reaped.
pub(crate) struct Corpse {
    pid: u32,
    pidfd: OwnedFd,
    ledger: Option<Ledger>,
    absent: Absent,
    _counted: Counted,
}

impl Corpse {
    pub(crate) fn new(pid: u32, pidfd: OwnedFd, ledger: Option<Ledger>, absent: Absent) -> Self {
        Self {
            pid,
            pidfd,
            ledger,
            absent,
            _counted: Counted::new(),
        }
    }

    /// Reaps it, now or once it has ended.
    pub(crate) fn bury(self) {
        if let Some(corpse) = self.reap() {
            hand_to_reaper(corpse);
        }
    }

    /// Reaps it if it has ended; returns it otherwise.
    fn reap(self) -> Option<Self> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let answer = waitid(WaitId::PidFd(self.pidfd.as_fd()), options);
        if matches!(answer, Ok(None) | Err(rustix::io::Errno::INTR)) {
            return Some(self);
        }
        if !self.absent.is_empty() {
            self.absent.move_aside();
            self.absent.clear(true);
        }
        if let Some(ledger) = &self.ledger
            && let Err(error) = ledger.forget(self.pid)
        {
            tracing::warn!(%error, pid = self.pid, "process not taken from the ledger");
        }
        None
    }
}

/// Killing takes a moment, longer if the process hangs in the kernel: a separate thread waits, not the dropper.
fn hand_to_reaper(corpse: Corpse) {
    static REAPER: OnceLock<Option<mpsc::Sender<Corpse>>> = OnceLock::new();
    let reaper = REAPER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new()
            .name("reaper".into())
            .spawn(move || reap_all(&receiver))
            .ok()
            .map(|_| sender)
    });
    match reaper {
        Some(reaper) => drop(reaper.send(corpse)),
        // No thread can be started: wait here, a SIGKILL has been sent.
        None => drop(waitid(
            WaitId::PidFd(corpse.pidfd.as_fd()),
            WaitIdOptions::EXITED,
        )),
    }
}

fn reap_all(receiver: &mpsc::Receiver<Corpse>) {
    let mut waiting: Vec<Corpse> = Vec::new();
    let [soon, later] = REAP_INTERVALS;
    let mut interval = soon;
    loop {
        let next = if waiting.is_empty() {
            receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            receiver.recv_timeout(interval)
        };
        interval = (interval * 2).min(later);
        match next {
            Ok(corpse) => {
                waiting.push(corpse);
                interval = soon;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        waiting = waiting.into_iter().filter_map(Corpse::reap).collect();
    }
}
