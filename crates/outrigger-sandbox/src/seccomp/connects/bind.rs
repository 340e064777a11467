//! Where a sandboxed process listens.
//!
//! By default, servers listen on every address, so other machines could reach what is meant for this one. A process
//! that lets the system pick its port does not need that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, sockopt};

use super::address::{self, Target};
use super::notify::{Caller, Listener, PendingCall, Reply};
use super::{Errno, errno_of, is_stream};

/// Binds a TCP socket; other kinds are left to the caller and its other rules.
pub(super) fn bind(
    ports: &[u16],
    listener: &Listener,
    asked: &PendingCall,
) -> Result<Reply, Errno> {
    let caller = Caller::of(listener, asked)?;
    let socket = caller.socket(asked)?;
    let family = sockopt::socket_domain(&socket).map_err(errno_of)?;
    let internet = [AddressFamily::INET, AddressFamily::INET6].contains(&family);
    if !internet || !is_stream(&socket)? {
        // Whatever replaces the socket in the meantime is caught when it listens.
        return Ok(Reply::Unruled);
    }
    let to = match address::target(family, &caller.address(asked)?)? {
        Target::Inet(to) => to,
        // The old way to write "every address".
        _ => return Ok(Reply::Made(Err(libc::EAFNOSUPPORT))),
    };
    Ok(Reply::Made(bind_to(ports, &socket, family, to)))
}

fn bind_to(
    ports: &[u16],
    socket: &OwnedFd,
    family: AddressFamily,
    to: SocketAddr,
) -> Result<(), Errno> {
    if !ports.contains(&to.port()) {
        return Err(libc::EACCES);
    }
    let at = match to.ip() {
        _ if to.port() != 0 => to.ip(),
        at if at.is_loopback() => at,
        at if at.is_unspecified() => loopback(socket, family)?,
        _ => return Err(libc::EACCES),
    };
    let at = match (at, family == AddressFamily::INET6) {
        (IpAddr::V4(at), true) => IpAddr::V6(at.to_ipv6_mapped()),
        (at, _) => at,
    };
    net::bind(socket, &SocketAddr::new(at, to.port())).map_err(errno_of)
}

/// Returns the replacement for "every address": IPv4's loopback, which a dual-stack socket reaches in IPv4-mapped
/// form.
fn loopback(socket: &OwnedFd, family: AddressFamily) -> Result<IpAddr, Errno> {
    let six = family == AddressFamily::INET6 && sockopt::ipv6_v6only(socket).map_err(errno_of)?;
    Ok(if six {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    })
}

/// Listens on a socket whose address is allowed. A socket without one would get every address from the kernel.
pub(super) fn listen(
    ports: &[u16],
    listener: &Listener,
    asked: &PendingCall,
    queue: libc::c_int,
) -> Result<(), Errno> {
    let caller = Caller::of(listener, asked)?;
    let socket = caller.socket(asked)?;
    let family = sockopt::socket_domain(&socket).map_err(errno_of)?;
    if [AddressFamily::INET, AddressFamily::INET6].contains(&family) {
        let at = net::getsockname(&socket).map_err(errno_of)?;
        let at = SocketAddr::try_from(at).map_err(errno_of)?;
        if at.port() == 0 {
            bind_to(ports, &socket, family, at)?;
        } else if !at.ip().to_canonical().is_loopback() && !ports.contains(&at.port()) {
            return Err(libc::EACCES);
        }
    }
    net::listen(&socket, queue).map_err(errno_of)
}
