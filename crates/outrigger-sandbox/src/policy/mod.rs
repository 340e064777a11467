//! What a process may touch: files and folders, ports, system calls. How much of it holds is in [`level`], the Landlock rules are
//! made in [`ruleset`] and [`view_rules`].

pub(crate) mod level;
mod ruleset;
pub(crate) mod view_rules;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::fs::absent::Clear;
use crate::fs::path_masks::Kept;
use crate::seccomp::calls::Calls;
use crate::seccomp::connects::Loopback;

/// Folders that programs need in order to start at all: programs, libraries, configuration, `/proc`, and what C
/// libraries and JS runtimes read of the machine. `/run/systemd/resolve` is where `/etc/resolv.conf` often points.
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
/// Devices without state that everybody may use.
const SYSTEM_DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// What a process may touch; all else is denied. Paths that do not exist when the process starts are skipped. The
/// program's own file may always be read and executed.
///
/// A confined process can also not signal or trace a process outside, change its limits or its place in the queue for the
/// processor, nor connect to an abstract UNIX socket outside (Linux 6.12). It shares no System V memory. If it runs as root it loses the capabilities that would get around this. UDP and UNIX sockets with a
/// path are a matter of [`Policy::calls`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// Files and folders (with all below) that may be read and executed. `/` is all but devices.
    pub read: Vec<PathBuf>,
    /// Files and folders (with all below) that may be read, executed and changed.
    pub write: Vec<PathBuf>,
    /// Folders (with all below) whose names may be listed; nothing in them may be opened.
    pub list: Vec<PathBuf>,
    /// Programs that may be executed besides the process's own; `None` allows all that may be read. With an empty list and
    /// [`Policy::calls`] it cannot even make a process.
    ///
    /// The loader of dynamic programs must be among them, and runs what it is given and may read. So with a list the usual folders of
    /// programs are not readable either, but for what is on it.
    pub execute: Option<Vec<PathBuf>>,
    /// TCP ports that may be bound; `None` allows all, an empty list none. 0 is one that the system picks, on this
    /// machine's loopback: a process that binds every address gets that one (where the host decides, as for
    /// [`Policy::connect_tcp`]).
    pub bind_tcp: Option<Vec<u16>>,
    /// TCP ports of `127.0.0.1` that may be connected to; `None` is every address and port, an empty list is none. The
    /// address counts where the host can decide about connections (Linux 5.9, and processes that it may look into);
    /// elsewhere Landlock's rules do, which are by port, and the level is [`Level::Partial`].
    pub connect_tcp: Option<Vec<u16>>,
    /// Where connections are not ruled: which services of this machine it reaches. Others of the internet it reaches all; what listens
    /// for datagrams on this machine, too.
    pub loopback: Option<Loopback>,
    /// Files and folders that look empty and cannot be changed, wherever they lie. Of what exists when the process
    /// starts; a hard link of another name is another file. Where the system has no views, nothing new can be made in the folders that
    /// they lie in; and where everything may be changed ([`Policy::open`]) they are open.
    pub hide: Vec<PathBuf>,
    /// Files and folders (with all below) that cannot be changed, wherever they lie. Where the system has no views, nothing new can be
    /// made in the folders that they lie in, either, but for those that are [`Policy::restored`].
    pub read_only: Vec<PathBuf>,
    /// Of [`Policy::read_only`], what [`Policy::clear`] brings back where the system has no views: it may be changed there meanwhile.
    pub restored: Vec<PathBuf>,
    /// Files, folders and links that stay where they are, or others could be put in their place; what they hold may be changed.
    pub held: Vec<PathBuf>,
    /// What a walk has found that is to be covered as well. What of it is no longer there when the process starts is looked for again.
    pub kept: Kept,
    /// Files and folders that do not exist and must not appear. One that the process creates is moved aside, under its
    /// name with [`crate::fs::absent::SUFFIX`], within a quarter of a second and at the latest when the process ends.
    pub absent: Vec<PathBuf>,
    /// Undoes what else it must not leave, now and then and when it has ended.
    pub clear: Clear,
    /// Its folder for temporary files, which may be written and which `TMPDIR` names.
    pub temporary: Option<PathBuf>,
    /// Variables that lead it to places of its own, over those of its environment.
    pub variables: Vec<(OsString, OsString)>,
    /// `/dev/shm` is its own, and empty.
    pub own_memory: bool,
    /// It is ended when a file that is hidden from it is saved again, as another file: a process that is started then does not see that
    /// one, either.
    pub ends_uncovered: bool,
    /// It has terminals of its own, and no other: a fresh `/dev/pts`, and a session without a controlling terminal. Where
    /// the system has no views it has none.
    pub own_terminals: bool,
    /// Which system calls are refused; `None` refuses only those that reach other processes.
    pub calls: Option<Calls>,
    /// Abstract UNIX sockets outside may be connected to.
    pub reach_out: bool,
}

impl Policy {
    /// What a program needs in order to start: system folders to read, `/dev/null` and its like to write. No rule for
    /// TCP.
    #[must_use]
    pub fn system() -> Self {
        Self {
            read: SYSTEM_READ.iter().map(PathBuf::from).collect(),
            write: SYSTEM_DEVICES.iter().map(PathBuf::from).collect(),
            list: Vec::new(),
            ..Self::default()
        }
    }

    /// What a process may do that is not confined, as a start for [`Policy::hide`] and [`Policy::read_only`]. That these
    /// hold takes from it what would undo them: mounting, tracing, `sudo`.
    #[must_use]
    pub fn open() -> Self {
        Self {
            write: vec![PathBuf::from("/")],
            reach_out: true,
            ..Self::default()
        }
    }

    /// What is seen of closed folders where it lies right below one.
    pub(crate) fn shown(&self) -> Vec<PathBuf> {
        let held = self.kept.covers().held.iter().chain(&self.held);
        let mut shown: Vec<PathBuf> = held.chain(&self.temporary).cloned().collect();
        shown.sort();
        shown.dedup();
        shown
    }

    /// Whether it has rules for TCP.
    pub(crate) fn rules_tcp(&self) -> bool {
        self.bind_tcp.is_some() || self.connect_tcp.is_some()
    }

    /// Whether the host decides about its connections.
    pub(crate) fn is_asked_about(&self) -> bool {
        self.rules_tcp() || self.loopback.is_some()
    }

    /// Whether everything may be changed that is not covered.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.write.iter().any(|path| path == Path::new("/"))
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
