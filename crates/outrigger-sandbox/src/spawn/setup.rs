//! The steps in the child between fork and exec. Only async-signal-safe calls: no allocation, no lock, no panic.

use std::io;

use seccompiler::BpfProgram;

use crate::namespaces::unshare::Namespaces;
use crate::namespaces::view::View;
use crate::policy::view_rules::ViewRule;
use crate::processes::tag;
use crate::seccomp::calls;
use crate::seccomp::connects;

/// The channel's file descriptor in every process that has one.
pub(crate) const CHANNEL_FD: libc::c_int = 3;

/// The capabilities that a confined root keeps (numbers of `linux/capability.h`): those for files and ports of root.
/// All others bypass the rules or are useless in a sandbox: mounting, tracing, raw sockets and devices, modules,
/// limits, opening files by handle. (`CAP_PERFMON` and `CAP_SYS_ADMIN` open `/proc/PID/environ` of every process since
/// Linux 6.16, bypassing Landlock.)
const KEPT: [libc::c_ulong; 8] = [
    0,  // CHOWN
    1,  // DAC_OVERRIDE
    3,  // FOWNER
    4,  // FSETID
    5,  // KILL
    6,  // SETGID
    7,  // SETUID
    10, // NET_BIND_SERVICE
];
/// More than the newest capability of any kernel.
const CAPABILITIES: libc::c_ulong = 64;

/// The signal that the process gets when its host ends.
const DEATH_SIGNAL: libc::c_ulong = 9;

/// The identity of an open file: what descriptor 3 was before fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: libc::dev_t,
    inode: libc::ino_t,
}

/// Everything the child needs, prepared before fork, so that it only reads it.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The host, or the init of its namespace, to detect its death between fork and `prctl`.
    pub(crate) parent: libc::pid_t,
    pub(crate) data: Option<u64>,
    pub(crate) nofile: Option<u64>,
    /// The soft limit of open files that the host had before it raised it.
    pub(crate) files: Option<u64>,
    pub(crate) tag: Option<u64>,
    /// The child's end of the channel, and what was open as 3 in the host.
    pub(crate) channel: Option<(libc::c_int, Option<FileId>)>,
    /// Standard input is a terminal and becomes the controlling terminal of its session.
    pub(crate) terminal: bool,
    /// Rules for the file systems of its own view.
    pub(crate) late: Vec<ViewRule>,
    pub(crate) no_new_privs: bool,
    /// There is a policy, enforced by Landlock or not: capabilities that bypass it are dropped.
    pub(crate) confined: bool,
    pub(crate) ruleset: Option<libc::c_int>,
    pub(crate) view: Option<View>,
    /// Its namespaces, if it must enter them itself; otherwise it is in them already.
    pub(crate) enters: Option<Namespaces>,
    pub(crate) filter: Option<BpfProgram>,
    /// The child's end of the pair over which the host receives the decisions about connections.
    pub(crate) connects: Option<libc::c_int>,
    /// The host decides about the names of files, too.
    pub(crate) reserves: bool,
}

impl Setup {
    /// Runs in the child, after `chdir`.
    #[expect(
        unsafe_code,
        reason = "system calls between fork and exec, where only raw calls are allowed"
    )]
    pub(crate) fn apply(&self) -> io::Result<()> {
        // SAFETY: every call is async-signal-safe, takes plain numbers or pointers to locals that outlive it, and
        // `io::Error::last_os_error` does not allocate.
        unsafe {
            // Before the signal is requested: a change of credentials would reset it.
            if let Some(namespaces) = &self.enters {
                namespaces.enter()?;
                if let Some(view) = &self.view {
                    view.apply(false)?;
                }
            }
            check(prctl(libc::PR_SET_PDEATHSIG, DEATH_SIGNAL))?;
            if libc::getppid() != self.parent {
                // It died before the signal was requested: there is no one to report to.
                libc::_exit(127);
            }
            // A session without a terminal, and with it its own group: otherwise `/dev/tty` is the host's.
            check(libc::setsid())?;
            if let Some(ruleset) = self.ruleset {
                for late in &self.late {
                    late.allow(ruleset)?;
                }
            }
            if self.terminal {
                check(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
            }
            self.limit()?;
            self.descriptors()?;
            if self.no_new_privs || self.confined {
                check(prctl(libc::PR_SET_NO_NEW_PRIVS, 1))?;
            }
            if self.confined {
                for capability in (0..CAPABILITIES).filter(|number| !KEPT.contains(number)) {
                    // Fails for everyone but root, who alone has capabilities to lose, and for numbers that this
                    // kernel lacks.
                    prctl(libc::PR_CAPBSET_DROP, capability);
                }
            }
            if let Some(ruleset) = self.ruleset {
                let answer = libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0_u32);
                check(if answer == 0 { 0 } else { -1 })?;
            }
            if let Some(socket) = self.connects {
                connects::install(socket, self.reserves)?;
            }
            match &self.filter {
                Some(filter) => calls::install(filter),
                None => Ok(()),
            }
        }
    }

    #[expect(unsafe_code, reason = "see `apply`")]
    unsafe fn limit(&self) -> io::Result<()> {
        // SAFETY: as in `apply`.
        unsafe {
            set_limit(libc::RLIMIT_CORE, 0)?;
            if let Some(bytes) = self.data {
                set_limit(libc::RLIMIT_DATA, bytes)?;
            }
            if let Some(count) = self.nofile {
                set_limit(libc::RLIMIT_NOFILE, count)?;
            } else if let Some(count) = self.files {
                set_soft_limit(libc::RLIMIT_NOFILE, count)?;
            }
            if let Some(tag) = self.tag {
                // The tag is best effort: without it the tree is found by its parents.
                let _ = set_limit(tag::RESOURCE, tag);
            }
        }
        Ok(())
    }

    /// Puts the channel at 3 and marks all other descriptors close-on-exec, including those that a C library of the
    /// host opened without the flag.
    #[expect(unsafe_code, reason = "see `apply`")]
    unsafe fn descriptors(&self) -> io::Result<()> {
        let mut first = CHANNEL_FD;
        // SAFETY: as in `apply`.
        unsafe {
            if let Some((end, before)) = self.channel {
                // The standard library reports a failed exec through its own pipe. If that pipe were 3, closing it
                // here would make a failure look like a success: the caller tries again instead.
                if file_id(CHANNEL_FD) != before {
                    return Err(io::Error::from_raw_os_error(RETRY));
                }
                check(libc::dup2(end, CHANNEL_FD))?;
                check(libc::fcntl(CHANNEL_FD, libc::F_SETFD, 0))?;
                first += 1;
            }
            let closed = libc::syscall(
                libc::SYS_close_range,
                first,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            if closed != 0 {
                mark_close_on_exec(first);
            }
        }
        Ok(())
    }
}

/// The error of a child that saw another file at 3 than its parent did; exec never returns it.
pub(crate) const RETRY: libc::c_int = libc::EBADFD;

/// The kernel reads five words and refuses unknown ones that are not zero, so all are passed in full width.
#[expect(unsafe_code, reason = "see `Setup::apply`")]
unsafe fn prctl(option: libc::c_int, argument: libc::c_ulong) -> libc::c_int {
    const NONE: libc::c_ulong = 0;
    // SAFETY: the options used here take a number, no pointer.
    unsafe { libc::prctl(option, argument, NONE, NONE, NONE) }
}

/// For kernels before 5.11, which lack the flag. Bounded: the host does not have more files than this.
#[expect(unsafe_code, reason = "see `Setup::apply`")]
unsafe fn mark_close_on_exec(first: libc::c_int) {
    for fd in first..65_536 {
        // SAFETY: a number that is not open answers an error and nothing happens.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(fd, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
}

#[expect(unsafe_code, reason = "see `Setup::apply`")]
unsafe fn set_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    // SAFETY: both pointers are to locals.
    unsafe {
        let mut now = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        check(libc::getrlimit(resource, &raw mut now))?;
        let value = value.min(now.rlim_max);
        let new = libc::rlimit {
            rlim_cur: value,
            rlim_max: value,
        };
        check(libc::setrlimit(resource, &raw const new))
    }
}

#[expect(unsafe_code, reason = "see `Setup::apply`")]
unsafe fn set_soft_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    // SAFETY: both pointers are to a local.
    unsafe {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        check(libc::getrlimit(resource, &raw mut limit))?;
        limit.rlim_cur = value.min(limit.rlim_max);
        check(libc::setrlimit(resource, &raw const limit))
    }
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Returns the identity of the open file; `None` if the number is not open.
#[expect(unsafe_code, reason = "the number is looked at without owning it")]
pub(crate) fn file_id(fd: libc::c_int) -> Option<FileId> {
    // SAFETY: the buffer is a local of the right type, zero is a valid value of it, and a number that is not open
    // answers an error.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut stat) == 0).then_some(FileId {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

/// Occupies 3 in the host if it is free, so that no other descriptor (above all the standard library's own error pipe)
/// gets it while a child is started. The number stays taken for the life of the host.
pub(crate) fn reserve_channel_fd() {
    if file_id(CHANNEL_FD).is_some() {
        return;
    }
    if let Ok(null) = std::fs::File::open("/dev/null")
        && let Ok(held) = rustix::io::fcntl_dupfd_cloexec(&null, CHANNEL_FD)
    {
        use std::os::fd::{AsRawFd as _, IntoRawFd as _};
        if held.as_raw_fd() == CHANNEL_FD {
            let _ = held.into_raw_fd();
        } else if null.as_raw_fd() == CHANNEL_FD {
            let _ = null.into_raw_fd();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_channels_number_is_taken_in_the_host() {
        reserve_channel_fd();
        let before = file_id(CHANNEL_FD);
        assert!(before.is_some());
        reserve_channel_fd();
        assert_eq!(file_id(CHANNEL_FD), before);
    }
}
