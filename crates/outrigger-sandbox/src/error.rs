//! What can go wrong when a process is started, watched or written down.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// A process could not be started or watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The spawning thread could not be started (the process is at its limit of threads).
    #[error("cannot start the spawning thread: {source}")]
    Thread {
        /// The system's answer.
        source: io::Error,
    },
    /// The spawning thread is gone: only when the host itself is going down.
    #[error("the spawning thread has ended, no process can be started")]
    Stopped,
    /// No executable file of this name.
    #[error("program {} not found (searched: {})", program.display(), search.display())]
    NotFound {
        /// What was asked for.
        program: PathBuf,
        /// The PATH that was searched, or the working directory a relative path was joined to.
        search: OsString,
    },
    /// The working directory is not a directory that can be entered.
    #[error("cannot start {} in {}: {source}", program.display(), cwd.display())]
    Cwd {
        /// What was to be started.
        program: PathBuf,
        /// The working directory that was asked for.
        cwd: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// fork, one of the settings in the child, or exec failed.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The Landlock rules could not be made. (A kernel without Landlock is not an error, see [`crate::Level`].)
    #[error("cannot make the Landlock rules for {}: {source}", program.display())]
    Policy {
        /// What was to be started.
        program: PathBuf,
        /// The library's answer.
        source: Box<landlock::RulesetError>,
    },
    /// The process did not start before the deadline of [`crate::spawn::run`].
    #[error("{} did not start within {deadline_ms} ms", program.display())]
    Deadline {
        /// What was to be started.
        program: PathBuf,
        /// The deadline in milliseconds.
        deadline_ms: u128,
    },
    /// A started process cannot be watched (its pidfd or pipes were refused). It has been killed.
    #[error("cannot watch process {pid}: {source}")]
    Watch {
        /// The process.
        pid: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// A project is too large to look for what a process must not see, or too much of it must not be seen.
    #[error("{} has more than {most} {what}", root.display())]
    TooMany {
        /// Where the walk began.
        root: PathBuf,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// What a process must not see is moved about while it is looked for.
    #[error("folders in {} keep being moved, so the denied paths in them cannot be located", root.display())]
    Moving {
        /// Where the walk began.
        root: PathBuf,
    },
    /// `sandbox = "strict"`, and the system cannot keep from a process what it is not to see.
    #[error("{} is not started: the system can enforce only a part of its sandbox", program.display())]
    Strict {
        /// What was to be started.
        program: PathBuf,
    },
    /// The policy of the machine forbids the program.
    #[error("{} is not started: the policy of this machine forbids `{pattern}`", program.display())]
    Forbidden {
        /// Its file.
        program: PathBuf,
        /// What forbids it.
        pattern: String,
    },
    /// What must be written down before a process starts cannot be.
    #[error("what has to be written down before a process starts cannot be, in {}: {source}", path.display())]
    Note {
        /// The folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no folder for temporary files of what runs in a sandbox.
    #[error("the folder for temporary files of sandboxed programs cannot be made: {source}")]
    Temporary {
        /// The system's answer.
        source: io::Error,
    },
    /// The ledger of processes cannot be read or written.
    #[error("cannot use the process ledger {}: {source}", path.display())]
    Ledger {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl SandboxError {
    /// A stable code for logs, tests and clients.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Thread { .. } => "spawn.thread",
            Self::Stopped => "spawn.stopped",
            Self::NotFound { .. } => "spawn.not_found",
            Self::Cwd { .. } => "spawn.cwd",
            Self::Spawn { .. } => "spawn.failed",
            Self::Policy { .. } => "spawn.policy",
            Self::Deadline { .. } => "spawn.deadline",
            Self::Watch { .. } => "process.watch",
            Self::TooMany { .. } => "spawn.too_many",
            Self::Moving { .. } => "spawn.moving",
            Self::Strict { .. } => "spawn.strict",
            Self::Forbidden { .. } => "spawn.forbidden",
            Self::Note { .. } => "spawn.note",
            Self::Temporary { .. } => "spawn.temporary",
            Self::Ledger { .. } => "ledger.io",
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { program, .. } => Some(format!(
                "install {} or put the folder that holds it on PATH",
                program.display()
            )),
            Self::Cwd { cwd, .. } => {
                Some(format!("create {} or choose another folder", cwd.display()))
            }
            Self::Spawn { source, .. } => spawn_hint(source).map(str::to_owned),
            Self::Watch { source, .. } if source.raw_os_error() == Some(libc::ENOSYS) => {
                Some("this needs Linux 5.4 or later (pidfd)".to_owned())
            }
            Self::TooMany { .. } => Some(
                "deny whole folders, as `secrets/*`, instead of names that may be anywhere, as `*.key`"
                    .to_owned(),
            ),
            Self::Strict { .. } => Some(
                "`outrigger doctor` shows what is missing; `sandbox = \"on\"` starts it anyway".to_owned(),
            ),
            Self::Forbidden { .. } => Some(
                "do without it; `outrigger doctor` shows the policy, which only the machine's administrator changes".to_owned(),
            ),
            Self::Temporary { .. } => Some(
                "make room in the system's folder for temporary files, or name another one with TMPDIR".to_owned(),
            ),
            Self::Note { source, .. } if source.kind() == io::ErrorKind::TimedOut => None,
            Self::Note { path, .. } => Some(format!(
                "make {} writable for this user, on a disk with room",
                path.display()
            )),
            Self::Ledger { path, .. } => {
                Some(format!("make {} writable for this user", path.display()))
            }
            _ => None,
        }
    }
}

fn spawn_hint(source: &io::Error) -> Option<&'static str> {
    match source.raw_os_error()? {
        libc::ENOENT => Some(
            "the file exists, so the interpreter named in it (its first line, or its loader) does not",
        ),
        libc::EACCES => Some(
            "make the file executable; in a sandbox, its folder and its loader must be readable",
        ),
        libc::ENOEXEC => Some(
            "the file is not a program for this machine, or a script without a first line `#!`",
        ),
        libc::EAGAIN => Some("the limit of processes or file descriptors of this user is reached"),
        libc::ENOMEM => Some("there is not enough memory to start a process"),
        libc::E2BIG => {
            Some("arguments and environment are too long, or there are too many nested sandboxes")
        }
        _ => None,
    }
}
