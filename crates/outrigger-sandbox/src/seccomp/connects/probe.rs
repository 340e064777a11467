//! Checks whether this kernel and this user support it, by trying.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_stdx::sync::lock;

use super::notify::{Caller, Listener, Reply};
use super::{address, errno_of, install, pair, receive};
use rustix::net::sockopt;

/// The error that the probe returns; no kernel would return it.
const ANSWER: libc::c_int = libc::ENOANO;
/// Exit code of the probe if nothing can be concluded; not an error number.
const UNCLEAR: libc::c_int = 255;
/// Timeout of the probe and of the end of its listener.
const MS: i64 = 5_000;

/// After an inconclusive probe, the time until the next: every caller waits for it, including every process start.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Returns whether connections of a child of this host can be watched. Probes until there is a conclusive result.
/// Requires Linux 5.9 or later and a user who may inspect their own children (Yama's `ptrace_scope` 2 and 3 forbid
/// it). Not possible within our own sandbox. A probe blocks, for seconds in the worst case; if it is inconclusive, the
/// next is made a minute later.
pub(crate) fn is_possible() -> bool {
    static KNOWN: Mutex<ProbeResult> = Mutex::new(ProbeResult::Not(None));
    let mut known = lock(&KNOWN);
    known.ask(Instant::now(), attempt)
}

/// The result of the probes so far.
enum ProbeResult {
    Answer(bool),
    /// Unknown; the time of the last probe.
    Not(Option<Instant>),
}

impl ProbeResult {
    fn ask(&mut self, now: Instant, attempt: impl FnOnce() -> io::Result<()>) -> bool {
        let last = match self {
            Self::Answer(answer) => return *answer,
            Self::Not(last) => *last,
        };
        if last.is_some_and(|last| now.duration_since(last) < RETRY_INTERVAL) {
            return false;
        }
        let tried = attempt();
        if let Some(answer) = conclusion(&tried) {
            *self = Self::Answer(answer);
            return answer;
        }
        if let Err(error) = tried {
            tracing::warn!("whether connections can be decided about is not known yet: {error}");
        }
        *self = Self::Not(Some(now));
        false
    }
}

/// Returns what a probe shows about all later ones; `None` if the machine was temporarily out of some resource.
fn conclusion(tried: &io::Result<()>) -> Option<bool> {
    let Err(error) = tried else {
        return Some(true);
    };
    let never = [
        libc::ENOSYS,
        libc::EINVAL,
        libc::EPERM,
        libc::EACCES,
        libc::EBUSY,
    ];
    let number = error.raw_os_error()?;
    never.contains(&number).then_some(false)
}

fn attempt() -> io::Result<()> {
    let (child, ours) = begin()?;
    let answered = answer(&ours);
    // A caller that still waited got an error when the listener was closed.
    drop(ours);
    let status = end(child)?;
    let code = if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        UNCLEAR
    };
    let listener = match (answered, code) {
        (Ok(listener), 0) => listener,
        (Err(error), 0 | UNCLEAR) => return Err(error),
        (Ok(_), UNCLEAR) => return Err(io::ErrorKind::Other.into()),
        (_, errno) => return Err(io::Error::from_raw_os_error(errno)),
    };
    // The end of the child must be noticed; it is already over.
    if listener.ends_within(MS) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOSYS))
    }
}

/// Starts a child that passes on a listener and waits for a reply. It has no copy of the host's end: once that is
/// closed nothing could reply, and the child must not outlive its host.
#[expect(unsafe_code, reason = "fork: the try is made in a child")]
fn begin() -> io::Result<(libc::pid_t, OwnedFd)> {
    let (ours, theirs) = pair()?;
    let to = address::here(false, 9);
    // SAFETY: the child makes async-signal-safe calls only and ends without running anything of ours.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: see above; the child's own copy is closed, once.
        0 => unsafe {
            libc::close(ours.as_raw_fd());
            libc::_exit(child(theirs.as_raw_fd(), &to))
        },
        child => Ok((child, ours)),
    }
}

/// Waits for our own child.
#[expect(unsafe_code, reason = "waiting for one child has no wrapper")]
fn end(child: libc::pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: the status is a local.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
    Ok(status)
}

/// Runs in the child; returns 0 if it got a reply, else why it did not.
#[expect(unsafe_code, reason = "see `begin`")]
fn child(socket: libc::c_int, to: &[u8]) -> libc::c_int {
    // SAFETY: raw calls on numbers and on a buffer of the given length.
    unsafe {
        // The host is not dumpable, but a process after exec is; only the latter can be inspected.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let tried = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        if tried < 0 {
            return UNCLEAR;
        }
        if let Err(error) = install(socket, false) {
            return error.raw_os_error().unwrap_or(UNCLEAR);
        }
        let Ok(len) = libc::socklen_t::try_from(to.len()) else {
            return UNCLEAR;
        };
        let answer = libc::connect(tried, to.as_ptr().cast(), len);
        let answered = io::Error::last_os_error().raw_os_error() == Some(ANSWER);
        if answer == -1 && answered { 0 } else { UNCLEAR }
    }
}

/// Replies to the one `connect` with all checks that a real caller needs.
fn answer(ours: &OwnedFd) -> io::Result<Listener> {
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
    match errno {
        ANSWER => Ok(listener),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_short_for_a_moment_is_asked_again() {
        let failed = |errno| Err(io::Error::from_raw_os_error(errno));
        for (tried, want) in [
            (Ok(()), Some(true)),
            (failed(libc::EBUSY), Some(false)),
            (failed(libc::EPERM), Some(false)),
            (failed(libc::ENOSYS), Some(false)),
            (failed(libc::EAGAIN), None),
            (failed(libc::EMFILE), None),
            (failed(libc::ENOMEM), None),
            (Err(io::ErrorKind::TimedOut.into()), None),
        ] {
            assert_eq!(conclusion(&tried), want, "{tried:?}");
        }
    }

    #[test]
    fn a_try_that_says_nothing_is_not_repeated_at_each_start() {
        let begin = Instant::now();
        let failed = |errno| Err(io::Error::from_raw_os_error(errno));
        let mut known = ProbeResult::Not(None);
        // Seconds since the first request, the result of a probe, whether one is made, and what is returned.
        for (at, would, tries, want) in [
            (0, failed(libc::EAGAIN), true, false),
            (1, Ok(()), false, false),
            (59, Ok(()), false, false),
            (60, Err(io::ErrorKind::TimedOut.into()), true, false),
            (119, Ok(()), false, false),
            (120, Ok(()), true, true),
            (121, failed(libc::EPERM), false, true),
        ] {
            let mut tried = false;
            let answer = known.ask(begin + Duration::from_secs(at), || {
                tried = true;
                would
            });
            assert_eq!((tried, answer), (tries, want), "after {at} s");
        }
    }

    #[test]
    fn a_try_that_nobody_answers_ends() {
        use rustix::event::{PollFd, PollFlags, poll};
        if !is_possible() {
            return;
        }
        let (child, ours) = begin().unwrap();
        // Its listener is on the way, and the host has ended.
        poll(&mut [PollFd::new(&ours, PollFlags::IN)], None).unwrap();
        drop(ours);
        assert_ne!(end(child).unwrap(), 0);
    }
}
