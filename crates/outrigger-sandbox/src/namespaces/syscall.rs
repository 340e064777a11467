//! Results of raw system calls.

use std::io;

/// Converts the result of a system call without a wrapper.
pub(super) fn called(answer: libc::c_long) -> io::Result<libc::c_int> {
    let answer = libc::c_int::try_from(answer).unwrap_or(-1);
    check(answer).map(|()| answer)
}

/// Converts -1 to the last OS error.
pub(super) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// As `fork`, with namespaces that `flags` name. The arguments behind the stack have another order on some machines; all are zero.
///
/// # Safety
/// The child makes async-signal-safe calls only, and never returns to what its parent was doing.
#[expect(unsafe_code, reason = "clone with namespaces has no wrapper")]
pub(super) unsafe fn fork(flags: libc::c_int) -> libc::pid_t {
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: without `CLONE_VM` it is fork.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) };
    libc::pid_t::try_from(pid).unwrap_or(-1)
}
