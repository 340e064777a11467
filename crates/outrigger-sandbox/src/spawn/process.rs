//! A started process as an owned value: while it is held, its number is ours; when it is dropped, it is killed and
//! reaped.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal,
    waitid,
};

use crate::fs::absent::Absent;
use crate::namespaces::init::Report;
use crate::processes::ledger::Ledger;
use crate::processes::{procfs, tag, tree};
use crate::spawn::exit::Exit;
use crate::spawn::reaper::Corpse;

/// How long a killed process may take to end before the host continues: it hangs in the kernel then.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How often its end is polled.
const END_INTERVAL: Duration = Duration::from_millis(1);

/// A child of this host that has not been reaped. The zombie is kept until drop: until then its number, and that of its
/// group, are not reused.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    start: u64,
    tag: Option<u64>,
    pidfd: Option<OwnedFd>,
    ledger: Option<Ledger>,
    absent: Absent,
    /// It has a policy: nothing that it started may outlive it.
    confined: bool,
    /// It is the init of a namespace, and this reports how the command in it ended.
    report: Option<Report>,
}

impl Process {
    /// Takes over the init of a namespace.
    pub(crate) fn adopt_init(pid: u32, report: Report) -> io::Result<Self> {
        let mut process = Self::adopt(pid, None)?;
        process.report = Some(report);
        Ok(process)
    }

    /// Takes over a child that has just been started. If this fails, the child has been killed.
    pub(crate) fn adopt(pid: u32, tag: Option<u64>) -> io::Result<Self> {
        let raw = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidInput)?;
        match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self {
                pid,
                start: procfs::start_time(pid).unwrap_or(0),
                tag: tag.filter(|tag| tag::of(pid) == Some(*tag)),
                pidfd: Some(pidfd),
                ledger: None,
                absent: Absent::default(),
                confined: false,
                report: None,
            }),
            Err(error) => {
                let _ = kill_process(raw, Signal::KILL);
                let _ = waitid(WaitId::Pid(raw), WaitIdOptions::EXITED);
                Err(error.into())
            }
        }
    }

    /// Sets whether everything that it starts must end with it.
    pub(crate) fn confined(mut self, confined: bool) -> Self {
        self.confined = confined;
        self
    }

    /// Records the process in a ledger, from which it is removed once it has been reaped.
    pub(crate) fn enter(&mut self, ledger: Ledger, what: &str) {
        match ledger.record(self.pid, self.start, what) {
            Ok(()) => self.ledger = Some(ledger),
            // A full disk must not stop the agent; only the cleanup after a crash is lost.
            Err(error) => {
                tracing::warn!(%error, pid = self.pid, "process not written to the ledger")
            }
        }
    }

    /// Moves aside what appears under these names until it has been reaped.
    pub(crate) fn keeps_free(&mut self, absent: Absent) {
        self.absent = absent;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the process id that the command sees itself.
    pub(crate) fn own_pid(&self) -> u32 {
        match self.report {
            // The first process that init starts.
            Some(_) => 2,
            None => self.pid,
        }
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Returns a descriptor that becomes readable when it has ended.
    pub(crate) fn watched(&self) -> io::Result<BorrowedFd<'_>> {
        match &self.report {
            Some(report) => Ok(report.pipe().as_fd()),
            None => self.pidfd(),
        }
    }

    /// Returns whether everything that it starts is in its own PID namespace, and ends with the host.
    pub(crate) fn is_namespace(&self) -> bool {
        self.report.is_some()
    }

    /// Ends a namespace with all its processes; returns `false` if there is none.
    fn kill_namespace(&self) -> bool {
        match (&self.report, &self.pidfd) {
            (Some(_), Some(pidfd)) => {
                // Fails if it has ended.
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
                true
            }
            _ => false,
        }
    }

    fn pidfd(&self) -> io::Result<BorrowedFd<'_>> {
        self.pidfd
            .as_ref()
            .map(OwnedFd::as_fd)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns how the process ended, without reaping it; `None` while it runs.
    pub(crate) fn exit(&self) -> io::Result<Option<Exit>> {
        if let Some(report) = &self.report {
            return report.exit();
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pidfd = self.pidfd()?;
        let status = rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(pidfd), options))?;
        Ok(status.map(|status| Exit {
            code: status.exit_status(),
            signal: status.terminating_signal(),
        }))
    }

    pub(crate) fn kill_tree(&self) {
        if !self.kill_namespace() {
            tree::kill(self.root());
        }
    }

    /// Kills the tree and waits until nothing of it runs, for [`END_TIMEOUT`] at most. Blocking.
    pub(crate) fn end_all(&self) {
        let until = Instant::now() + END_TIMEOUT;
        while !self.has_ended_whole() && Instant::now() < until {
            self.wait_a_moment();
        }
    }

    /// Waits for [`END_INTERVAL`], or until the init of a namespace has ended.
    fn wait_a_moment(&self) {
        let init = self.pidfd.as_ref().filter(|_| self.is_namespace());
        let ended = init.zip(Timespec::try_from(END_INTERVAL).ok());
        let waited = ended
            .map(|(pidfd, moment)| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&moment)));
        if !matches!(waited, Some(Ok(_))) {
            thread::sleep(END_INTERVAL);
        }
    }

    /// Kills what is left, and returns whether nothing was.
    fn has_ended_whole(&self) -> bool {
        let Some(pidfd) = self.pidfd.as_ref().filter(|_| self.kill_namespace()) else {
            return tree::kill(self.root()) == 0;
        };
        // The kernel lets init end after it has ended all others.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(pidfd.as_fd()), options));
        !matches!(ended, Ok(None))
    }

    pub(crate) fn root(&self) -> tree::Root {
        tree::Root {
            pid: self.pid,
            // If there is any answer, it is an unreaped child of ours, alive or not.
            is_ours: self.exit().is_ok(),
            tag: self.tag,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.kill_namespace() {
            // No process is left in the namespace.
        } else if !self.confined && matches!(self.exit(), Ok(Some(_))) {
            // It ended on its own: kill what it left running in its group; a detached daemon stays.
            tree::kill_group(self.pid);
        } else {
            self.kill_tree();
        }
        let Some(pidfd) = self.pidfd.take() else {
            return;
        };
        let absent = std::mem::take(&mut self.absent);
        Corpse::new(self.pid, pidfd, self.ledger.take(), absent).bury();
    }
}
