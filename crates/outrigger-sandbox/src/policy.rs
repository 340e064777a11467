//! What a process may touch, as Landlock rules.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::fs::absent::Clear;
use crate::fs::beside::Beside;
use crate::fs::path_masks::Kept;
use crate::fs::programs;
use crate::namespaces::view;
use crate::seccomp::calls;
use crate::seccomp::calls::Calls;
use crate::seccomp::connects;
use crate::seccomp::connects::Loopback;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
    path_beneath_rules,
};

/// The newest version of Landlock whose rules we have tried; what an older kernel lacks is left out.
const KNOWN: ABI = ABI::V7;
/// The first version that guards `truncate`, so that "no write" is true.
const FILES_ABI: u32 = 3;
/// The first version with TCP rules.
const TCP_ABI: u32 = 4;

/// How much of a [`Policy`] is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: the kernel has no Landlock, or it is switched off.
    None,
    /// Some rules: the system lacks what the policy needs for the rest.
    Partial,
    /// Every rule.
    Full,
}

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
    /// Files and folders (with all below) that may be read and executed.
    pub read: Vec<PathBuf>,
    /// Files and folders (with all below) that may be read, executed and changed.
    pub write: Vec<PathBuf>,
    /// Folders (with all below) whose names may be listed; nothing in them may be opened.
    pub list: Vec<PathBuf>,
    /// Programs that may be executed besides the process's own; `None` is all that may be read. An empty list is none:
    /// with [`Policy::calls`] it can then not even make a process.
    ///
    /// The loader of dynamic programs has to be among them, and runs what it is given and may read. So with a list the
    /// usual folders of programs are not readable either, but for what is on it.
    pub execute: Option<Vec<PathBuf>>,
    /// TCP ports that may be bound; `None` is all, an empty list is none. 0 is one that the system picks, on this machine's
    /// loopback: who asks for every address gets that one (where the host decides, as for [`Policy::connect_tcp`]).
    pub bind_tcp: Option<Vec<u16>>,
    /// TCP ports of `127.0.0.1` that may be connected to; `None` is every address and port, an empty list is none. The
    /// address counts where the host can decide about connections (Linux 5.9, and processes that it may look into);
    /// elsewhere Landlock's rules do, which are by port, and the level is [`Level::Partial`].
    pub connect_tcp: Option<Vec<u16>>,
    /// Where connections are not ruled: which services of this machine it reaches. Others of the internet it reaches all; what listens
    /// for datagrams on this machine, too.
    pub loopback: Option<Loopback>,
    /// Files and folders that look empty and cannot be changed, wherever they lie. Of what exists when the process
    /// starts; a hard link of another name is another file. Where the system has no views, what of them may not be changed
    /// cannot be read either, and the rest is open.
    pub hide: Vec<PathBuf>,
    /// Files and folders (with all below) that cannot be changed, wherever they lie.
    pub read_only: Vec<PathBuf>,
    /// Files and folders that stay where they are, or others could be put in their place; what they hold may be changed.
    pub held: Vec<PathBuf>,
    /// What a walk has found that is to be covered as well. What of it is not there any more when the process starts is
    /// looked for anew.
    pub kept: Kept,
    /// Files and folders that are not there and are not to come. One that the process makes is put aside, under its name with
    /// [`crate::fs::absent::SUFFIX`], within a quarter of a second and at the latest when the process ends.
    pub absent: Vec<PathBuf>,
    /// Undoes what else it must not leave, now and then and when it has ended.
    pub clear: Clear,
    /// Its folder for temporary files, which may be written and which `TMPDIR` names.
    pub temporary: Option<PathBuf>,
    /// `/dev/shm` is its own, and empty.
    pub own_memory: bool,
    /// It is ended when a file that is hidden from it is saved anew, as another file: a process that is started then does not
    /// see that one, either.
    pub ends_uncovered: bool,
    /// It has terminals of its own, and no other: a fresh `/dev/pts`, and a session without a controlling terminal. Where
    /// the system has no views it has none.
    pub own_terminals: bool,
    /// Which system calls are refused; `None` is none but those that reach other processes.
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

    /// How much of this policy the running kernel enforces.
    #[must_use]
    pub fn level(&self) -> Level {
        let views = view::is_possible();
        let filters = calls::is_possible();
        let addresses = !self.is_asked_about() || connects::is_possible();
        match self.level_for(kernel_abi()) {
            Level::None if self.rules_tcp() && addresses => Level::Partial,
            Level::Full if !(views && filters && addresses) => Level::Partial,
            level => level,
        }
    }

    /// How much of its Landlock rules a kernel with this version (0: none) enforces.
    pub(crate) fn level_for(&self, abi: u32) -> Level {
        let needed = if self.rules_tcp() { TCP_ABI } else { FILES_ABI };
        match abi {
            0 => Level::None,
            abi if abi < needed => Level::Partial,
            _ => Level::Full,
        }
    }

    /// What of these may be read, where nothing can be covered: less what is hidden, and less what closed folders do not show.
    fn beside(&self, readable: Vec<PathBuf>) -> Beside {
        if view::is_possible() {
            return Beside {
                read: readable,
                list: Vec::new(),
            };
        }
        let kept = self.kept.covers();
        let closed = kept.closed.iter().filter_map(|it| fs::read_dir(it).ok());
        let closed = closed.flatten().flatten().map(|it| it.path());
        let closed: Vec<PathBuf> = closed.filter(|it| !kept.held.contains(it)).collect();
        let hidden = [self.hide.as_slice(), &kept.hide, &closed].concat();
        Beside::of(&readable, &hidden)
    }

    /// Makes the ruleset, in the host and before fork, since it allocates; `None` when the kernel has no Landlock.
    /// The child only hands the descriptor to `landlock_restrict_self`.
    pub(crate) fn ruleset(&self, program: &Path) -> Result<Option<OwnedFd>, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?;
        ruleset = ruleset.scope(match self.reach_out {
            true => Scope::Signal.into(),
            false => Scope::AbstractUnixSocket | Scope::Signal,
        })?;
        if self.bind_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
        }
        if self.connect_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
        }
        let none = AccessFs::Execute;
        let (read, write) = match self.execute {
            None => (AccessFs::from_read(KNOWN), AccessFs::from_all(KNOWN)),
            Some(_) => (
                AccessFs::from_read(KNOWN) & !none,
                AccessFs::from_all(KNOWN) & !none,
            ),
        };
        let readable = programs::readable(&self.read, self.execute.as_deref());
        let Beside {
            read: readable,
            list,
        } = self.beside(readable);
        let run = programs::run(self.execute.as_deref());
        let created = ruleset
            .create()?
            .add_rules(path_beneath_rules(&readable, read))?
            .add_rules(path_beneath_rules([program], AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&run, AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&self.write, write))?
            .add_rules(path_beneath_rules(
                self.list.iter().chain(&list),
                AccessFs::ReadDir,
            ))?;
        let created = add_ports(created, self.bind_tcp.as_deref(), AccessNet::BindTcp)?;
        let created = add_ports(created, self.connect_tcp.as_deref(), AccessNet::ConnectTcp)?;
        Ok(created.into())
    }
}

fn add_ports(
    mut ruleset: RulesetCreated,
    ports: Option<&[u16]>,
    access: AccessNet,
) -> Result<RulesetCreated, RulesetError> {
    for port in ports.unwrap_or_default() {
        ruleset = ruleset.add_rule(NetPort::new(*port, access))?;
    }
    Ok(ruleset)
}

/// A folder of the child's view whose file system is made after the ruleset, so that no rule of it is about that one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late {
    folder: &'static std::ffi::CStr,
    /// What is allowed in there, in bits of `linux/landlock.h`; where the kernel does not know the first ones, the next.
    access: &'static [u64],
}

impl Late {
    /// Write, read, list: bits 1 to 3; and `ioctl` on devices, bit 15.
    pub(crate) const TERMINALS: Self = Self {
        folder: c"/dev/pts",
        access: &[0b1110 | 1 << 15, 0b1110],
    };
    /// All that there is, of Linux 6.10, 6.2, 5.19 and 5.13.
    pub(crate) const MEMORY: Self = Self {
        folder: c"/dev/shm",
        access: &[(1 << 16) - 1, (1 << 15) - 1, (1 << 14) - 1, (1 << 13) - 1],
    };

    /// Execute, read, list: bits 0, 2 and 3.
    pub(crate) const NUMBERS: Self = Self {
        folder: c"/proc",
        access: &[0b1101, 0b1100],
    };

    /// Allows it in a ruleset that is not in force yet. Runs in the child.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn allow(self, ruleset: libc::c_int) -> std::io::Result<()> {
        /// `struct landlock_path_beneath_attr` of `linux/landlock.h`.
        #[repr(C, packed)]
        struct Beneath {
            access: u64,
            folder: libc::c_int,
        }
        /// `LANDLOCK_RULE_PATH_BENEATH`.
        const BENEATH: libc::c_int = 1;
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: raw calls on literals and on a local of the size that the kernel reads.
        unsafe {
            let folder = libc::open(self.folder.as_ptr(), flags);
            if folder == -1 {
                return Err(std::io::Error::last_os_error());
            }
            for access in self.access {
                let access = *access;
                let rule = Beneath { access, folder };
                let answer = libc::syscall(
                    libc::SYS_landlock_add_rule,
                    ruleset,
                    BENEATH,
                    &raw const rule,
                    0_u32,
                );
                if answer == 0 {
                    libc::close(folder);
                    return Ok(());
                }
            }
            Err(std::io::Error::last_os_error())
        }
    }
}

/// The Landlock version of the running kernel, 0 when it has none.
#[expect(
    unsafe_code,
    reason = "landlock_create_ruleset has no wrapper that answers the version"
)]
pub(crate) fn kernel_abi() -> u32 {
    const CREATE_RULESET_VERSION: libc::c_uint = 1;
    // SAFETY: with this flag and a null attribute of size 0 the call only answers a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_by_kernel_and_rules() {
        let files = Policy::system();
        let tcp = Policy {
            bind_tcp: Some(vec![0]),
            ..Policy::default()
        };
        let cases = [
            (&files, 0, Level::None),
            (&files, 2, Level::Partial),
            (&files, 3, Level::Full),
            (&tcp, 0, Level::None),
            (&tcp, 3, Level::Partial),
            (&tcp, 4, Level::Full),
        ];
        for (policy, abi, expected) in cases {
            assert_eq!(policy.level_for(abi), expected, "{policy:?} at {abi}");
        }
    }
}
