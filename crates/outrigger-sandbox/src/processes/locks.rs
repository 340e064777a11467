//! Locks that processes hold or wait for, from `/proc`.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::processes::procfs;

/// Maximum number of open files of one process that are looked at.
const MAX_FILES: usize = 4096;
/// Programs that hold a lock file without keeping it open, as `git commit` does while its hooks run.
const HOLDERS: [&str; 1] = ["git"];

/// Device and inode.
type FileId = (u64, u64);

/// A process that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pid: u32,
    name: String,
    /// What it was started as.
    label: String,
    file: Option<PathBuf>,
    pub(crate) lock: Option<FileId>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pid, name, label, ..
        } = self;
        write!(f, "`{name}` (process {pid} of {label})")?;
        match &self.file {
            Some(file) => write!(f, " holds {}", file.display()),
            None => write!(f, " may hold the lock of a repository"),
        }
    }
}

/// Returns the locks that a process holds, and its open lock files; locks that others may hold too only with `shared`.
pub(crate) fn of(pid: u32, label: &str, shared: bool) -> Vec<LockHolder> {
    let name = procfs::name(pid);
    let holder = |file, lock| LockHolder {
        pid,
        name: name.clone(),
        label: label.to_owned(),
        file,
        lock,
    };
    let process = Path::new("/proc").join(pid.to_string());
    let mut found: Vec<LockHolder> = fs::read_dir(process.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_FILES)
        .filter_map(|open| {
            let file = fs::read_link(open.path()).ok()?;
            let about = fs::read_to_string(process.join("fdinfo").join(open.file_name()));
            let is_locked = about.is_ok_and(|text| is_locked(&text, shared));
            let lock = is_locked.then(|| id_of(&open.path())).flatten();
            let is_lock_file = file.extension().is_some_and(|it| it == "lock");
            (is_lock_file || is_locked).then(|| holder(Some(file), lock))
        })
        .collect();
    if found.is_empty() && HOLDERS.contains(&name.as_str()) {
        found.push(holder(None, None));
    }
    found
}

/// Returns the files whose locks the threads of a process wait for.
pub(crate) fn awaited_by(pid: u32) -> Vec<FileId> {
    let process = Path::new("/proc").join(pid.to_string());
    let threads = fs::read_dir(process.join("task"));
    let threads = threads.into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
            id_of(&process.join("fd").join(waits_on(&call)?.to_string()))
        })
        .collect()
}

/// Follows the kernel's link to an open file.
fn id_of(open: &Path) -> Option<FileId> {
    let file = fs::metadata(open).ok()?;
    Some((file.dev(), file.ino()))
}

/// Parses `/proc/PID/fdinfo/FD`: `lock: 1: FLOCK ADVISORY WRITE 359 00:13:11691 0 EOF`.
fn is_locked(text: &str, shared: bool) -> bool {
    text.lines()
        .filter_map(|line| line.strip_prefix("lock:")?.split_ascii_whitespace().nth(3))
        .any(|kind| kind == "WRITE" || (shared && kind == "READ"))
}

/// Parses `/proc/PID/syscall`, `73 0x9 0x2 …`: returns the descriptor that the call waits to lock.
fn waits_on(call: &str) -> Option<u64> {
    let mut fields = call.split_ascii_whitespace();
    let number: libc::c_long = fields.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok();
    let (descriptor, operation) = (argument()?, argument()?);
    let waits = [libc::F_SETLKW, libc::F_OFD_SETLKW].map(libc::c_int::cast_unsigned);
    let waits = number == libc::SYS_flock
        || (number == libc::SYS_fcntl && waits.iter().any(|it| u64::from(*it) == operation));
    waits.then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let held = |kind| format!("pos:\t0\nlock:\t1: POSIX  ADVISORY  {kind} 7 00:13:9 0 EOF\n");
        assert!(is_locked(&held("WRITE"), false) && is_locked(&held("READ"), true));
        assert!(!is_locked(&held("READ"), false) && !is_locked("pos:\t0\nlock:\tx\n", true));
        let (flock, fcntl) = (libc::SYS_flock, libc::SYS_fcntl);
        assert_eq!(waits_on(&format!("{flock} 0x1f 0x2 0x0 0x7f")), Some(31));
        assert_eq!(waits_on(&format!("{fcntl} 0x3 0x7 0x0 0x7f")), Some(3));
        assert_eq!(waits_on(&format!("{fcntl} 0x3 0x1 0x0 0x7f")), None);
        assert_eq!(waits_on("running\n"), None);
    }
}
