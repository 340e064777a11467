//! Which namespaces a process of ours has, and how it gets into them.

use std::io;

use super::syscall::check;

/// What a process has to itself: mounts, and System V memory, semaphores and queues, which are not files.
const OWN: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;

/// The identity map of a user namespace: the process stays who it is.
#[derive(Debug, Clone)]
struct Maps {
    uid: String,
    gid: String,
}

impl Maps {
    /// What the host needs so that its children can mount: nothing when it may do so itself.
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

/// Namespaces of a process of ours, and who it is in them.
#[derive(Debug, Clone)]
pub(crate) struct Namespaces(Option<Maps>);

impl Namespaces {
    /// What a child of this host needs to have any.
    pub(crate) fn needed() -> Self {
        Self(Maps::needed())
    }

    /// Whether it needs a user namespace to have the others.
    pub(crate) fn has_user(&self) -> bool {
        self.0.is_some()
    }

    /// For `clone`, with numbers of processes among them.
    pub(crate) fn flags(&self) -> libc::c_int {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        OWN | libc::CLONE_NEWPID | user
    }

    /// Moves the caller to namespaces of its own, but for that of numbers, which only a child would be in.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn enter(&self) -> io::Result<()> {
        let user = self.0.as_ref().map_or(0, |_| libc::CLONE_NEWUSER);
        // SAFETY: a number.
        check(unsafe { libc::unshare(OWN | user) })?;
        self.settle()
    }

    /// What is left to do in new ones: the caller stays who it is, and mounts of its own stay its own.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(crate) fn settle(&self) -> io::Result<()> {
        // SAFETY: raw calls on numbers and literals.
        unsafe {
            if let Some(maps) = &self.0 {
                // The host is not dumpable, so its child's files in /proc are root's until this; exec decides
                // again.
                libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
                write(c"/proc/self/setgroups", b"deny")?;
                write(c"/proc/self/uid_map", maps.uid.as_bytes())?;
                write(c"/proc/self/gid_map", maps.gid.as_bytes())?;
            }
            let none = std::ptr::null();
            // What the host mounts later still shows up here, what is mounted here stays here.
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

/// Mounts the `/proc` of the caller's namespace of numbers.
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
