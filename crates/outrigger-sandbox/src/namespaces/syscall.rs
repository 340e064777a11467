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
