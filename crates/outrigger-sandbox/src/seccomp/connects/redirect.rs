//! Redirects a connection through the process's proxy, transparently.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outrigger_network_proxy::ProxyRedirect;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use super::{Errno, address, connect, errno_of, is_nonblocking};

/// Timeout for connecting to the proxy and for its response.
const PROXY_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for a non-blocking socket. The program waits although it does not expect to, and can do nothing else
/// meanwhile.
const NONBLOCKING_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of bytes of a response.
const MAX_ANSWER: usize = 8 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// Turns an unconnected socket into a tunnel to `to`. What the proxy refuses is refused; what it cannot reach is
/// unreachable.
pub(super) fn tunnel(
    proxy: &ProxyRedirect,
    socket: &OwnedFd,
    v6: bool,
    to: SocketAddr,
) -> Result<(), Errno> {
    let until = Instant::now() + time_limit(socket)?;
    match connect(socket, &address::here(v6, proxy.port())) {
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
        proxy.authorization()
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

fn time_limit(socket: &OwnedFd) -> Result<Duration, Errno> {
    Ok(if is_nonblocking(socket)? {
        NONBLOCKING_TIMEOUT
    } else {
        PROXY_TIMEOUT
    })
}

/// Reads the response byte by byte: what follows comes from the target.
fn answer(socket: &OwnedFd, until: Instant) -> Result<Vec<u8>, Errno> {
    let mut said = Vec::new();
    let mut byte = [0_u8];
    while !said.ends_with(END) {
        wait(socket, PollFlags::IN, until)?;
        match recv(socket, byte.as_mut_slice(), RecvFlags::DONTWAIT) {
            Ok((1.., _)) if said.len() < MAX_ANSWER => said.extend(byte),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::net::TcpListener;

    #[test]
    fn an_event_loop_waits_a_short_time_for_a_proxy_that_says_nothing() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = silent.local_addr().unwrap();
        let proxy = ProxyRedirect::new(to.port(), String::new());
        let socket = |flags| {
            let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
            socket_with(family, kind, flags, None).unwrap()
        };
        let loops = socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        assert_eq!(time_limit(&loops), Ok(NONBLOCKING_TIMEOUT));
        assert_eq!(tunnel(&proxy, &loops, false, to), Err(libc::ETIMEDOUT));
        assert_eq!(time_limit(&socket(SocketFlags::CLOEXEC)), Ok(PROXY_TIMEOUT));
    }
}
