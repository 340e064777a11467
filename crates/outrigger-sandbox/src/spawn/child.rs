//! A running process, as seen by async code.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::error::SandboxError;
use crate::fs::absent::Absent;
use crate::fs::stale_masks::Hidden;
use crate::policy::level::Level;
use crate::processes::tree::Root;
use crate::spawn::async_fd::register;
use crate::spawn::exit::Exit;
use crate::spawn::process::Process;
use crate::spawn::scoped_network::NetworkLease;
use crate::spawn::terminal::Terminal;

/// A process and the host's ends of its streams, not yet bound to a runtime. Dropping it kills the process, so a caller
/// that gave up leaves nothing behind.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) channel: Option<net::UnixStream>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) level: Option<Level>,
    pub(crate) absent: Absent,
    /// What is hidden from it, if it ends when that is replaced.
    pub(crate) hidden: Option<Hidden>,
}

/// Forbidden changes of a process that were undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files and folders that it created although they must not appear ([`crate::Policy::absent`]); they were moved
    /// aside.
    pub moved_aside: Vec<PathBuf>,
    /// Other changes ([`crate::Policy::clear`]), as sentences.
    pub changes: Vec<String>,
}

/// A started process. Dropping it kills its process group (its whole tree, if it has not ended on its own) and reaps
/// it. Until then the process stays a zombie after its end, so that [`Child::pid`] is not reused.
#[derive(Debug)]
pub struct Child {
    /// The writing end of standard input, if piped. Drop it to signal the end of input.
    pub stdin: Option<pipe::Sender>,
    /// The reading end of standard output, if piped.
    pub stdout: Option<pipe::Receiver>,
    /// The reading end of standard error, if piped.
    pub stderr: Option<pipe::Receiver>,
    /// The host's end of the channel, if one was requested.
    pub channel: Option<UnixStream>,
    /// The host's end of the terminal, if one was requested.
    pub terminal: Option<Terminal>,
    watch: AsyncFd<OwnedFd>,
    level: Option<Level>,
    process: Arc<Process>,
    pub(crate) network: Option<NetworkLease>,
    pub(crate) absent: Absent,
}

impl Child {
    /// Must be called within the runtime. On failure the process is dropped, and so killed.
    pub(crate) fn from_started(started: Started) -> Result<Self, SandboxError> {
        let Started {
            process,
            stdin,
            stdout,
            stderr,
            channel,
            terminal,
            level,
            absent,
            hidden: _,
        } = started;
        let pid = process.pid();
        let connect = || -> io::Result<Self> {
            let watch = process.watched()?.try_clone_to_owned()?;
            let channel = channel.map(|channel| {
                channel.set_nonblocking(true)?;
                UnixStream::from_std(channel)
            });
            Ok(Self {
                stdin: stdin.map(pipe::Sender::from_owned_fd).transpose()?,
                stdout: stdout.map(pipe::Receiver::from_owned_fd).transpose()?,
                stderr: stderr.map(pipe::Receiver::from_owned_fd).transpose()?,
                channel: channel.transpose()?,
                terminal: terminal.map(Terminal::new).transpose()?,
                watch: register(watch, Interest::READABLE)?,
                level,
                process: Arc::new(process),
                network: None,
                absent,
            })
        };
        connect().map_err(|source| SandboxError::Watch { pid, source })
    }

    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Returns the process id, which is also the id of its process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the process id that it sees itself, which differs in a PID namespace.
    #[must_use]
    pub fn own_pid(&self) -> u32 {
        self.process.own_pid()
    }

    /// Returns its start time in clock ticks since boot: together with [`Child::pid`] an identity that is never reused.
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.process.start()
    }

    /// Returns how much of the policy is enforced; `None` if there was no policy.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        self.level
    }

    /// Returns the hosts refused so far, with port and code, each once ([`crate::ScopedNetwork`]).
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.network
            .as_ref()
            .map(NetworkLease::refused)
            .unwrap_or_default()
    }

    /// Ends what it left running and undoes its forbidden changes. Call it after its end; blocking.
    #[must_use]
    pub fn finish(&self) -> Undone {
        if self.absent.is_empty() {
            return Undone::default();
        }
        // Whatever still runs would do it again.
        self.process.end_all();
        Undone {
            moved_aside: self.absent.move_aside(),
            changes: self.absent.clear(true),
        }
    }

    /// Waits for its end. May be called again, and dropped at any point. What the process left running in its group is
    /// killed when the child is dropped, not here.
    ///
    /// # Errors
    /// [`SandboxError::Watch`] if the system does not report it.
    pub async fn wait(&mut self) -> Result<Exit, SandboxError> {
        let pid = self.pid();
        let watch_error = |source| SandboxError::Watch { pid, source };
        loop {
            if let Some(exit) = self.process.exit().map_err(watch_error)? {
                return Ok(exit);
            }
            let mut ready = self.watch.readable().await.map_err(watch_error)?;
            ready.clear_ready();
        }
    }

    /// Returns how it ended, or `None` while it runs.
    ///
    /// # Errors
    /// [`SandboxError::Watch`] if the system does not report it.
    pub fn try_wait(&self) -> Result<Option<Exit>, SandboxError> {
        self.process.exit().map_err(|source| SandboxError::Watch {
            pid: self.pid(),
            source,
        })
    }

    /// Kills it and everything that it has started, including what left its process group, session or parent: each tree
    /// carries its own tag (an otherwise meaningless resource limit, `RLIMIT_LOCKS`). If the tag cannot be set, because
    /// the host runs below a low `ulimit -x`, a daemon whose parent has ended escapes. Reads `/proc`; takes some
    /// milliseconds on a busy machine.
    pub fn kill_tree(&self) {
        self.process.kill_tree();
    }

    /// Returns a handle to kill it from elsewhere, for instance while another task waits for it. The handle does not
    /// keep the process alive.
    #[must_use]
    pub fn killer(&self) -> Killer {
        Killer(Arc::downgrade(&self.process))
    }
}

/// Kills a [`Child`] from elsewhere.
#[derive(Debug, Clone)]
pub struct Killer(Weak<Process>);

impl Killer {
    /// Returns the root of its tree, unless it has been dropped.
    pub(crate) fn root(&self) -> Option<Root> {
        self.0.upgrade().map(|it| it.root())
    }

    /// Returns whether the child still exists, that is, has not been dropped.
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Like [`Child::kill_tree`]; does nothing if the child has been dropped.
    pub fn kill_tree(&self) {
        if let Some(process) = self.0.upgrade() {
            process.kill_tree();
        }
    }
}
