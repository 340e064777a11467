//! Whether this kernel and this user can do it, found out by doing it.

use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;

use super::notify::{Caller, Listener, Reply};
use super::{address, errno_of, install, pair, receive};
use rustix::net::sockopt;

/// The answer that the try is given; no kernel would give it.
const ANSWER: libc::c_int = libc::ENOANO;
/// How long the try may take, and the end of its listener.
const MS: i64 = 5_000;

/// Whether a child of this host can be watched; asked once, by trying it. It takes Linux 5.9 or later, and a user who may
/// look into his own children (Yama's `ptrace_scope` 2 and 3 forbid it). Within a box of our own it is not possible.
pub(crate) fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| attempt().unwrap_or(false))
}

#[expect(unsafe_code, reason = "fork: the try is made in a child")]
fn attempt() -> io::Result<bool> {
    let (ours, theirs) = pair()?;
    let to = address::here(false, 9);
    // SAFETY: the child makes async-signal-safe calls only and ends without running anything of ours.
    let child = unsafe {
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => libc::_exit(child(theirs.as_raw_fd(), &to)),
            child => child,
        }
    };
    drop(theirs);
    let answered = answer(&ours);
    let mut status = 0;
    // SAFETY: waiting for our own child. One that still waits for an answer was told that there is none when the
    // listener was closed.
    unsafe {
        while libc::waitpid(child, &raw mut status, 0) == -1 {
            if io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return Ok(false);
            }
        }
    }
    let told = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    Ok(match answered {
        Ok(listener) => told && listener.ends_within(MS),
        Err(_) => false,
    })
}

/// Runs in the child; 0 when it was answered.
#[expect(unsafe_code, reason = "see `attempt`")]
fn child(socket: libc::c_int, to: &[u8]) -> libc::c_int {
    // SAFETY: raw calls on numbers and on a buffer whose length is said.
    unsafe {
        // The host is not dumpable, and what execs is; only the latter can be looked into.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let tried = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        if tried < 0 || install(socket).is_err() {
            return 1;
        }
        let Ok(len) = libc::socklen_t::try_from(to.len()) else {
            return 1;
        };
        let answer = libc::connect(tried, to.as_ptr().cast(), len);
        let answered = io::Error::last_os_error().raw_os_error() == Some(ANSWER);
        i32::from(!(answer == -1 && answered))
    }
}

/// Answers the one `connect`, with all that is needed of who makes it.
fn answer(ours: &std::os::fd::OwnedFd) -> io::Result<Listener> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec {
        tv_sec: MS / 1000,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(ours, PollFlags::IN)], Some(&timeout))?;
    let listener = Listener::new(receive(ours)?);
    let asked = listener.next().ok_or(io::ErrorKind::BrokenPipe)?;
    let looked = Caller::of(&listener, &asked).and_then(|caller| {
        caller.address(&asked)?;
        let socket = caller.socket(&asked)?;
        sockopt::socket_domain(&socket).map_err(errno_of)
    });
    let errno = looked.err().unwrap_or(ANSWER);
    listener.answer(&asked, Reply::Made(Err(errno)));
    Ok(listener)
}
