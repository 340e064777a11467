//! Descriptors that the runtime polls.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the current runtime.
#[expect(
    unsafe_code,
    reason = "tokio asks for the promise that the descriptor stays the same and open"
)]
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and keeps its number until it is dropped, which the `AsyncFd` does after it has
    // deregistered it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}
