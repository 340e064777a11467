//! What a process may access: files and folders, ports, system calls. [`level`] computes how much of it is enforced; [`ruleset`] and
//! [`view_rules`] build the Landlock rules.

pub(crate) mod level;
mod ruleset;
pub(crate) mod view_rules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fs::absent::Clear;
use crate::fs::path_masks::CoverWalk;
use crate::seccomp::calls::Calls;
use crate::seccomp::connects::Loopback;

/// Folders that programs need in order to start at all: programs, libraries, configuration, `/proc`, and the machine settings that C
/// libraries and JS runtimes read. `/run/systemd/resolve` is where `/etc/resolv.conf` often points.
const SYSTEM_READ: &[&str] = &[
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc",
    "/proc",
    "/nix/store",
    "/run/current-system",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];
/// Stateless devices that every process may use.
const SYSTEM_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What a process may access; everything else is denied. Paths that do not exist when the process starts are skipped. The program's own
/// file may always be read and executed.
///
/// A confined process also cannot signal or trace a process outside, change its limits or scheduling priority, or connect to an abstract
/// UNIX socket outside (Linux 6.12). It shares no System V memory. If it runs as root, it loses the capabilities that would bypass this.
/// UDP and UNIX sockets with a path are controlled by [`Policy::calls`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Files and folders (with everything below) that may be read and executed. `/` means everything except devices.
    pub read: Vec<PathBuf>,
    /// Files and folders (with everything below) that may be read, executed and changed.
    pub write: Vec<PathBuf>,
    /// Folders (with everything below) whose names may be listed; nothing in them may be opened.
    pub list: Vec<PathBuf>,
    /// Programs that may be executed besides the process's own; `None` allows all that may be read. With an empty list and
    /// [`Policy::calls`] it cannot even create a process.
    ///
    /// The list must include the dynamic loader, which runs any file it may read. So with a list, the usual program folders are not
    /// readable either, except for the listed programs.
    pub execute: Option<Vec<PathBuf>>,
    /// TCP ports that may be bound; `None` allows all, an empty list none. 0 is a port that the system picks, on this machine's loopback: a
    /// process that binds every address gets that one (where the host decides, as for [`Policy::connect_tcp`]).
    pub bind_tcp: Option<Vec<u16>>,
    /// TCP ports of `127.0.0.1` that may be connected to; `None` allows every address and port, an empty list none. The address is checked
    /// where the host can decide about connections (Linux 5.9, and processes that it may inspect). Elsewhere Landlock's rules apply, which
    /// are by port, and the level is [`Level::Partial`].
    pub connect_tcp: Option<Vec<u16>>,
    /// Which local services the process may connect to if connections are not restricted. It may connect to all other internet services,
    /// and to local services that listen for datagrams.
    pub loopback: Option<Loopback>,
    /// Files and folders that appear empty and cannot be changed, wherever they lie. Applies to what exists when the process starts; a hard
    /// link with another name is another file. On systems without views, nothing can be created in their parent folders; if everything may
    /// be changed ([`Policy::open`]), those are open.
    pub hide: Vec<PathBuf>,
    /// Files and folders (with everything below) that cannot be changed, wherever they lie. On systems without views, nothing can be
    /// created in their parent folders either, except for those in [`Policy::restored`].
    pub read_only: Vec<PathBuf>,
    /// The part of [`Policy::read_only`] that [`Policy::clear`] restores on systems without views: it may be changed there in the meantime.
    pub restored: Vec<PathBuf>,
    /// Files, folders and links that must not be moved, or others could replace them; their contents may be changed.
    pub held: Vec<PathBuf>,
    /// More paths to mask, found by a walk. If one of them no longer exists when the process starts, the walk is repeated.
    pub kept: CoverWalk,
    /// Files and folders that do not exist and must not appear. One that the process creates is moved aside, under its
    /// name with [`crate::fs::absent::SUFFIX`], within a quarter of a second and at the latest when the process ends.
    pub absent: Vec<PathBuf>,
    /// Files and folders, without links on the way, that do not exist and that it must neither make nor, where others make them, change: a
    /// call that names one, or something below one, fails as on a read-only file system (where the host decides, as for
    /// [`Policy::connect_tcp`]).
    pub reserved: Vec<PathBuf>,
    /// Undoes other forbidden changes, periodically and when the process has ended.
    pub clear: Clear,
    /// The process's temporary folder, which is writable and named by `TMPDIR`.
    pub temporary: Option<PathBuf>,
    /// Variables that point to its own folders; they override its environment.
    pub variables: Vec<(OsString, OsString)>,
    /// `/dev/shm` is private and empty.
    pub own_memory: bool,
    /// The process is ended when a hidden file is saved again as another file. A process that is started after that does not see the new
    /// file either.
    pub ends_uncovered: bool,
    /// It has its own terminals and no others: a fresh `/dev/pts`, and a session without a controlling terminal. On systems without views
    /// it has none.
    pub own_terminals: bool,
    /// The system calls that are refused; `None` refuses only those that affect other processes.
    pub calls: Option<Calls>,
    /// Allows connections to abstract UNIX sockets outside.
    pub reach_out: bool,
}

impl Policy {
    /// Returns what a program needs in order to start: system folders to read, `/dev/null` and the like to write. No rule for TCP.
    #[must_use]
    pub fn system() -> Self {
        Self {
            read: SYSTEM_READ.iter().map(PathBuf::from).collect(),
            write: SYSTEM_DEVICES.iter().map(PathBuf::from).collect(),
            list: Vec::new(),
            ..Self::default()
        }
    }

    /// Returns a policy that allows everything, as a start for [`Policy::hide`] and [`Policy::read_only`]. To enforce these, the process
    /// cannot mount, trace or use `sudo`.
    #[must_use]
    pub fn open() -> Self {
        Self {
            write: vec![PathBuf::from("/")],
            reach_out: true,
            ..Self::default()
        }
    }

    /// Returns what closed folders show right below them.
    pub(crate) fn shown(&self) -> Vec<PathBuf> {
        let held = self.kept.covers().held.iter().chain(&self.held);
        let mut shown: Vec<PathBuf> = held.chain(&self.temporary).cloned().collect();
        shown.sort();
        shown.dedup();
        shown
    }

    /// Returns whether it has rules for TCP.
    pub(crate) fn rules_tcp(&self) -> bool {
        self.bind_tcp.is_some() || self.connect_tcp.is_some()
    }

    /// Returns whether the host decides about its connections, or about the names of files.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.rules_tcp() || self.loopback.is_some() || !self.reserved.is_empty()
    }

    /// Returns whether everything may be changed that is not masked.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.write.iter().any(|path| path == Path::new("/"))
    }

    /// Returns whether it is that of a command: these have services of their session; plugins and servers of the user's do not.
    pub(crate) fn is_of_command(&self) -> bool {
        self.loopback.is_some()
    }

    /// Allows one more file or folder to be read.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Allows one more file or folder to be read and changed.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }
}
