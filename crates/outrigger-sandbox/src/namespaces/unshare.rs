//! The namespaces of our child processes, and how they enter them.

use std::io;

use super::syscall::check;

/// Namespaces of its own for a process: mounts, and System V memory, semaphores and queues, which are not
/// files.
const OWN: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// The identity map of a user namespace: the process keeps its user.
#[derive(Debug, Clone)]
struct Maps {
    uid: String,
    gid: String,
}

impl Maps {
    /// Returns what the host needs so that its children can mount; `None` if it may mount already.
    fn needed() -> Option<Self> {
        let admin = rustix::thread::capabilities(None).is_ok_and(|sets| {
            sets.effective
                .contains(rustix::thread::CapabilitySet::SYS_ADMIN)
        });
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        (!admin).then(|| Self {
            uid: format!("{0} {0} 1", uid.as_raw()),
            gid: format!("{0} {0} 1", gid.as_raw()),
        })
    }
}

/// The namespaces of a child process, and its user in them.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces(Option<Maps>);

impl Namespaces {
    /// Returns what a child of this host needs to have namespaces.
    pub(crate) fn needed() -> Self {
        Self(Maps::needed())
    }

    /// Returns whether it needs a user namespace to have the others.
    pub(crate) fn has_user(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the flags for `clone`, including the PID namespace.
    pub(crate) fn flags(&self) -> libc::c_int {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        OWN | libc::CLONE_NEWPID | user
    }

    /// Moves the caller to new namespaces, except a PID namespace, which only its children would enter.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn enter(&self) -> io::Result<()> {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        // SAFETY: a number.
        check(unsafe { libc::unshare(OWN | user) })?;
        self.settle()
    }

    /// Finishes the setup of new namespaces: the caller keeps its user, and its mounts stay private.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn settle(&self) -> io::Result<()> {
        // SAFETY: raw calls on numbers and literals.
        unsafe {
            if let Some(maps) = &self.0 {
                // The host is not dumpable, so its child's files in /proc belong to root until this call;
                // exec decides again.
                libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", maps.uid.as_bytes())?;
                write(c"/proc/self/gid_map", maps.gid.as_bytes())?;
            }
            let none = std::ptr::null();
            // Later mounts of the host still show up here; mounts made here stay here.
            check(libc::mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_SLAVE,
                none.cast(),
            ))
        }
    }
}

/// Mounts the `/proc` of the caller's PID namespace.
#[expect(unsafe_code, reason = "see `View::apply`")]
pub(crate) fn own_proc(read_only: bool) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let flags = if read_only {
        flags | libc::MS_RDONLY
    } else {
        flags
    };
    // SAFETY: raw calls on literals.
    check(unsafe {
        libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            flags,
            std::ptr::null(),
        )
    })
}

#[expect(unsafe_code, reason = "see `View::apply`")]
unsafe fn write(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is as long as is said, the descriptor is closed again.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(file)?;
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let answer = check(if written < 0 { -1 } else { 0 });
        libc::close(file);
        answer
    }
}
