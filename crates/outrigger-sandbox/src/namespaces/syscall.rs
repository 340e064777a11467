//! Answers of raw system calls.

use std::io;

/// The answer of a call that has no wrapper.
pub(super) fn called(answer: libc::c_long) -> io::Result<libc::c_int> {
    let answer = libc::c_int::try_from(answer).unwrap_or(-1);
    check(answer).map(|()| answer)
}

/// The error of a call that answers -1 with one.
pub(super) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
