//! Which namespaces children of this host can have, found out once by making them.

use std::io;
use std::sync::OnceLock;

use super::unshare::{self, Namespaces};
use super::view;

/// The child's exit code: a bit for each thing that it could not have.
const NO_PROC: libc::c_int = 1;
const NO_VIEW: libc::c_int = 2;

/// What a child of this host can have.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Support {
    /// A namespace of process numbers, with a `/proc` that shows it.
    numbers: bool,
    /// A view of the file system of its own.
    views: bool,
}

/// Whether a child of this host can have a namespace of process numbers, and a `/proc` that shows it.
pub(crate) fn has_numbers() -> bool {
    support().numbers
}

/// Whether a child of this host can have a view of the file system of its own.
pub fn has_views() -> bool {
    support().views
}

fn support() -> Support {
    static SUPPORT: OnceLock<Support> = OnceLock::new();
    *SUPPORT.get_or_init(|| {
        let namespaces = Namespaces::needed();
        // One child for both: a fork copies the host's page tables.
        let tried = attempt(namespaces.flags(), || {
            namespaces.settle().map_or(NO_PROC | NO_VIEW, |()| {
                let view = view::attempt().map_or(NO_VIEW, |()| 0);
                view | unshare::own_proc(true).map_or(NO_PROC, |()| 0)
            })
        });
        let lacks = tried.unwrap_or(NO_PROC | NO_VIEW);
        Support {
            numbers: lacks & NO_PROC == 0,
            views: lacks & NO_VIEW == 0 || views_alone(&namespaces),
        }
    })
}

/// A process that moves to namespaces of its own can have a view where a new one with a namespace of numbers cannot.
fn views_alone(namespaces: &Namespaces) -> bool {
    let tried = attempt(0, || {
        let made = namespaces.enter().and_then(|()| view::attempt());
        made.map_or(NO_VIEW, |()| 0)
    });
    tried.is_ok_and(|lacks| lacks == 0)
}

/// What `try_it` answers in a child with these flags of `clone`. It makes async-signal-safe calls only.
///
/// # Errors
/// There was no child, or it was killed.
#[expect(unsafe_code, reason = "the try is made in a child")]
fn attempt(flags: libc::c_int, try_it: impl FnOnce() -> libc::c_int) -> io::Result<libc::c_int> {
    // SAFETY: the child makes async-signal-safe calls only and ends without running anything of ours; waiting writes to a local.
    unsafe {
        let child = super::syscall::fork(flags);
        if child == -1 {
            return Err(io::Error::last_os_error());
        }
        if child == 0 {
            libc::_exit(try_it());
        }
        let mut status = 0;
        while libc::waitpid(child, &raw mut status, 0) == -1 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error);
            }
        }
        if libc::WIFEXITED(status) {
            Ok(libc::WEXITSTATUS(status))
        } else {
            Err(io::ErrorKind::Other.into())
        }
    }
}
