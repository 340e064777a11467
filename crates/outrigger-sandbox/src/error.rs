//! Errors of starting, watching and recording processes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use outrigger_protocol::diagnose::Diagnose;

/// An error while starting or watching a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The spawning thread could not be started (the process is at its thread limit).
    #[error("cannot start the spawning thread: {source}")]
    Thread {
        /// The operating system's error.
        source: io::Error,
    },
    /// The spawning thread is gone. Happens only while the host itself shuts down.
    #[error("the spawning thread has ended, no process can be started")]
    Stopped,
    /// No executable file has this name.
    #[error("program {} not found (searched: {})", program.display(), search.display())]
    NotFound {
        /// The program as requested.
        program: PathBuf,
        /// The PATH that was searched, or the working directory a relative path was joined to.
        search: OsString,
    },
    /// The working directory does not exist or cannot be entered.
    #[error("cannot start {} in {}: {source}", program.display(), cwd.display())]
    Cwd {
        /// The program to start.
        program: PathBuf,
        /// The requested working directory.
        cwd: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// `fork`, a setting in the child, or `exec` failed.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program to start.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The Landlock rules could not be created. (A kernel without Landlock is not an error, see
    /// [`crate::Level`].)
    #[error("cannot make the Landlock rules for {}: {source}", program.display())]
    Policy {
        /// The program to start.
        program: PathBuf,
        /// The library's error.
        source: Box<landlock::RulesetError>,
    },
    /// The process did not start before the deadline of [`crate::spawn::run`].
    #[error("{} did not start within {deadline_ms} ms", program.display())]
    Deadline {
        /// The program to start.
        program: PathBuf,
        /// The deadline in milliseconds.
        deadline_ms: u128,
    },
    /// A started process cannot be watched because its pidfd or pipes were refused. It has been killed.
    #[error("cannot watch process {pid}: {source}")]
    Watch {
        /// The process id.
        pid: u32,
        /// The operating system's error.
        source: io::Error,
    },
    /// The project is too large to search for files to mask, or has too many of them.
    #[error("{} has more than {most} {what}", root.display())]
    TooMany {
        /// The root of the walk.
        root: PathBuf,
        /// The kind of thing that exceeds the limit.
        what: &'static str,
        /// The limit.
        most: usize,
    },
    /// Folders that must be masked keep moving during the search.
    #[error("folders in {} keep being moved, so the denied paths in them cannot be located", root.display())]
    Moving {
        /// The root of the walk.
        root: PathBuf,
    },
    /// `sandbox = "strict"` is set and the system cannot mask everything from the process.
    #[error("{} is not started: the system can enforce only a part of its sandbox", program.display())]
    Strict {
        /// The program to start.
        program: PathBuf,
    },
    /// The machine's policy forbids the program.
    #[error("{} is not started: the policy of this machine forbids `{pattern}`", program.display())]
    Forbidden {
        /// The program's file.
        program: PathBuf,
        /// The pattern that forbids it.
        pattern: String,
    },
    /// A process cannot be frozen, so none is.
    #[error("cannot freeze `{name}` (process {pid} of {label}): {why}")]
    NotFrozen {
        /// The name of the process.
        name: String,
        /// Its number.
        pid: u32,
        /// What it was started as.
        label: String,
        /// The reason.
        why: &'static str,
    },
    /// Frozen processes could wake themselves.
    #[error("cannot freeze processes: this kernel has no seccomp")]
    NoFilters,
    /// The record that must exist before a process starts cannot be written.
    #[error("cannot write the process journal in {}: {source}", path.display())]
    Note {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is no folder for temporary files of sandboxed processes.
    #[error("cannot create the temporary folder of sandboxed programs: {source}")]
    Temporary {
        /// The operating system's error.
        source: io::Error,
    },
    /// The process ledger cannot be read or written.
    #[error("cannot use the process ledger {}: {source}", path.display())]
    Ledger {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Diagnose for SandboxError {
    fn code(&self) -> &'static str {
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
            Self::NotFrozen { .. } | Self::NoFilters => "process.not_frozen",
            Self::Note { .. } => "spawn.note",
            Self::Temporary { .. } => "spawn.temporary",
            Self::Ledger { .. } => "ledger.io",
        }
    }

    fn hint(&self) -> Option<String> {
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
            Self::NotFrozen { pid, label, .. } => Some(format!(
                "end it (`kill -9 {pid}`) or switch off {label}, and let the command run again"
            )),
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
