//! Leading a connection through the process's proxy, without the process's knowing.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use super::{Errno, address, connect, errno_of};

/// How long the way to the proxy and its answer may take; the thread that asked waits so long.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same for a socket that does not wait by itself: its thread has other things to do (the one thread of a JavaScript
/// runtime), and no way to be told of the end later.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer.
const MOST: usize = 8 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// A process's way in to its proxy ([`crate::proxy::Pass::door`]): connections that it does not make itself are made by it.
#[derive(Clone)]
pub struct Door {
    pub(crate) port: u16,
    /// The value of `proxy-authorization`.
    pub(crate) login: String,
}

/// The login is not shown: whoever has it is that client.
impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// Makes of a socket that is not connected a tunnel to `to`. What the proxy says no to is refused, what it cannot
    /// reach is unreachable.
    pub(super) fn lead(&self, socket: &OwnedFd, v6: bool, to: SocketAddr) -> Result<(), Errno> {
        let flags = fcntl_getfl(socket).map_err(errno_of)?;
        let patience = match flags.contains(OFlags::NONBLOCK) {
            true => SHORT_PATIENCE,
            false => PATIENCE,
        };
        let until = Instant::now() + patience;
        match connect(socket, &address::here(v6, self.port)) {
            Err(libc::EINPROGRESS) => {
                wait(socket, PollFlags::OUT, until)?;
                match sockopt::socket_error(socket).map_err(errno_of)? {
                    Ok(()) => {}
                    Err(error) => return Err(errno_of(error)),
                }
            }
            answer => answer?,
        }
        let head = format!(
            "CONNECT {to} HTTP/1.1\r\nhost: {to}\r\nproxy-authorization: {}\r\n\r\n",
            self.login
        );
        let mut rest = head.as_bytes();
        while !rest.is_empty() {
            wait(socket, PollFlags::OUT, until)?;
            match send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(errno_of(error)),
            }
        }
        let said = answer(socket, until)?;
        match said.get(..12) {
            Some(b"HTTP/1.1 200") => Ok(()),
            Some(b"HTTP/1.1 502") => Err(libc::EHOSTUNREACH),
            _ => Err(libc::EACCES),
        }
    }
}

/// Reads the answer, byte by byte: what comes behind it is the target's.
fn answer(socket: &OwnedFd, until: Instant) -> Result<Vec<u8>, Errno> {
    let mut said = Vec::new();
    let mut byte = [0_u8];
    while !said.ends_with(END) {
        wait(socket, PollFlags::IN, until)?;
        match recv(socket, byte.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((1.., _)) if said.len() < MOST => said.extend(byte),
            Ok(_) => return Err(libc::ECONNRESET),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno_of(error)),
        }
    }
    Ok(said)
}

fn wait(socket: &OwnedFd, what: PollFlags, until: Instant) -> Result<(), Errno> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = left.try_into().map_err(|_| libc::EINVAL)?;
        match poll(&mut [PollFd::new(socket, what)], Some(&timeout)) {
            Ok(0) => return Err(libc::ETIMEDOUT),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno_of(error)),
        }
    }
}
