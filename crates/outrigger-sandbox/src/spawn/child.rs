//! A running process, seen from the async side.

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
use crate::policy::level::Level;
use crate::spawn::async_fd::register;
use crate::spawn::exit::Exit;
use crate::spawn::process::Process;
use crate::spawn::scoped_network::NetworkLease;
use crate::spawn::terminal::Terminal;

/// A process and the host's ends of its streams, not yet bound to a runtime. Dropping it kills the process, so a
/// caller that gave up waiting leaves nothing behind.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    pub(crate) channel: Option<net::UnixStream>,
    pub(crate) terminal: Option<OwnedFd>,
    pub(crate) level: Option<Level>,
    pub(crate) absent: Absent,
}

/// What a process did and must not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files and folders that it created ([`crate::Policy::absent`]); they were moved aside.
    pub moved_aside: Vec<PathBuf>,
    /// The rest ([`crate::Policy::clear`]), in sentences.
    pub changes: Vec<String>,
}

/// A started process. Dropping it kills its process group (its whole tree, if it has not ended by itself) and reaps it.
/// Until then the process stays a zombie after its end, so that [`Child::pid`] is not reused.
#[derive(Debug)]
pub struct Child {
    /// The writing end of standard input, if piped. Drop it to signal the end of input.
    pub stdin: Option<pipe::Sender>,
    /// The reading end of standard output, if piped.
    pub stdout: Option<pipe::Receiver>,
    /// The reading end of standard error, if piped.
    pub stderr: Option<pipe::Receiver>,
    /// The host's end of the channel, if one was asked for.
    pub channel: Option<UnixStream>,
    /// The host's end of the terminal, if one was asked for.
    pub terminal: Option<Terminal>,
    watch: AsyncFd<OwnedFd>,
    level: Option<Level>,
    process: Arc<Process>,
    pub(crate) network: Option<NetworkLease>,
    pub(crate) absent: Absent,
}

impl Child {
    /// Must be called within the runtime. A failure drops, and so kills, the process.
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

    /// The process number, which is also that of its process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The number by which it knows itself: another one in a namespace of its own.
    #[must_use]
    pub fn own_pid(&self) -> u32 {
        self.process.own_pid()
    }

    /// When it was started, in clock ticks since boot: with [`Child::pid`] a name that is never reused.
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.process.start()
    }

    /// How much of the policy is enforced; `None` when there was no policy.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        self.level
    }

    /// Hosts that it was refused so far, with port and code, each once ([`crate::ScopedNetwork`]).
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.network
            .as_ref()
            .map(NetworkLease::refused)
            .unwrap_or_default()
    }

    /// Ends what it left running, and undoes what it did and must not do. For after its end: blocking.
    #[must_use]
    pub fn finish(&self) -> Undone {
        if self.absent.is_empty() {
            return Undone::default();
        }
        // What still runs would do it again.
        self.process.end_all();
        Undone {
            moved_aside: self.absent.move_aside(),
            changes: self.absent.clear(true),
        }
    }

    /// Waits for its end. May be called again, and dropped at any point. What the process left running in its group
    /// is killed when the child is dropped, not here.
    ///
    /// # Errors
    /// [`SandboxError::Watch`] when the system refuses to say.
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

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// [`SandboxError::Watch`] when the system refuses to say.
    pub fn try_wait(&self) -> Result<Option<Exit>, SandboxError> {
        self.process.exit().map_err(|source| SandboxError::Watch {
            pid: self.pid(),
            source,
        })
    }

    /// Kills it and everything that it has started, also what left its process group, its session or its parent: each
    /// tree carries a mark of its own (an otherwise meaningless resource limit, `RLIMIT_LOCKS`). Where the mark cannot
    /// be set, because the host runs below a low `ulimit -x`, a daemon whose parent has ended gets away. Reads `/proc`,
    /// some milliseconds on a busy machine.
    pub fn kill_tree(&self) {
        self.process.kill_tree();
    }

    /// A handle to kill it from elsewhere, for instance while someone waits for it. It does not keep the process.
    #[must_use]
    pub fn killer(&self) -> Killer {
        Killer(Arc::downgrade(&self.process))
    }
}

/// Kills a [`Child`] from elsewhere.
#[derive(Debug, Clone)]
pub struct Killer(Weak<Process>);

impl Killer {
    /// Whether the child has not been dropped.
    pub(crate) fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// As [`Child::kill_tree`]; nothing when the child has been dropped.
    pub fn kill_tree(&self) {
        if let Some(process) = self.0.upgrade() {
            process.kill_tree();
        }
    }
}
