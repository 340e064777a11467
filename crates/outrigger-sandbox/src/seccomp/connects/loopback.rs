//! Local services: a process may connect to those that it or another process of its session started, and to no others. A development
//! server, a database or this program's own server answers every client with the rights of the user who started it. So does a cloud's
//! metadata service, which hands out the machine's credentials: no session owns it, and connections to it are refused as well.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use outrigger_stdx::sync::lock;

use super::address::{self, Target};
use super::notify::{Caller, Listener, PendingCall, Reply};
use super::{
    ConnectDecision, Errno, Rules, connect_while, direct, errno_of, is_stream, unix_sockets,
};
use crate::processes::socket_owners;

/// Names are resolved at this port if the system has its own resolver.
const DNS: u16 = 53;

/// Metadata services with their own addresses: Alibaba's, Oracle's former one, and those of AWS and Google over IPv6.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The local services that processes of a session may connect to: their own, and some ports.
#[derive(Clone, Debug, Default)]
pub struct Loopback(Arc<Services>);

#[derive(Debug, Default)]
struct Services {
    ports: Vec<u16>,
    /// Sockets on which processes of the session listen.
    own: Mutex<HashSet<u64>>,
}

/// Two sessions are never equal.
impl PartialEq for Loopback {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Loopback {}

impl Loopback {
    /// Creates a session that may connect to these ports besides its own.
    #[must_use]
    pub fn new(ports: Vec<u16>) -> Self {
        Self(Arc::new(Services {
            ports,
            own: Mutex::default(),
        }))
    }

    /// Records a socket that one of its processes is about to listen on.
    pub(super) fn listen(&self, listener: &Listener, asked: &PendingCall) -> Result<Reply, Errno> {
        let socket = Caller::of(listener, asked)?.socket(asked)?;
        let stat = rustix::fs::fstat(&socket).map_err(errno_of)?;
        let mut own = lock(&self.0.own);
        own.insert(stat.st_ino);
        // Whatever replaces the socket in the meantime is not recorded.
        Ok(Reply::Unruled)
    }

    /// Connects, unless the target is a foreign local service.
    pub(super) fn connect(
        &self,
        rules: &Rules,
        listener: &Listener,
        asked: &PendingCall,
    ) -> Result<ConnectDecision, Errno> {
        let caller = Caller::of(listener, asked)?;
        let bytes = caller.address(asked)?;
        let socket = caller.socket(asked)?;
        let family = rustix::net::sockopt::socket_domain(&socket).map_err(errno_of)?;
        match address::target(family, &bytes)? {
            Target::Inet(to) if is_stream(&socket)? => match is_of_this_machine(to.ip()) {
                true => self.allows(to).map(|()| direct(socket, bytes)),
                // Some clouds resolve names at the same address.
                false if is_metadata(to.ip()) && to.port() != DNS => Err(libc::EACCES),
                // Others may be slow.
                false => Ok(ConnectDecision::Redirected(Box::new(move |waits| {
                    connect_while(&socket, &bytes, waits)
                }))),
            },
            Target::Path(path) => rules.connect_path(path, socket, caller, listener, asked),
            Target::Abstract if !rules.abstract_sockets => Err(libc::EPERM),
            Target::Inet(_) | Target::Abstract | Target::Nothing => Ok(direct(socket, bytes)),
        }
    }

    /// Returns the sockets on which processes of the session listen when the result is called.
    fn own(&self) -> impl FnOnce() -> HashSet<u64> + Send + 'static {
        let services = Arc::clone(&self.0);
        move || {
            let own = lock(&services.own);
            own.clone()
        }
    }

    fn allows(&self, to: SocketAddr) -> Result<(), Errno> {
        if to.port() == DNS || self.0.ports.contains(&to.port()) {
            return Ok(());
        }
        let there = socket_owners::sockets(to.ip(), to.port());
        let own = lock(&self.0.own);
        match there.iter().all(|socket| own.contains(socket)) {
            true if there.is_empty() => Err(libc::ECONNREFUSED),
            true => Ok(()),
            false => Err(libc::EACCES),
        }
    }
}

/// Returns whether an address is that of a cloud's metadata service: all link-local addresses (AWS, Azure, Google and most others),
/// and the listed ones.
fn is_metadata(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local() || METADATA.contains(&IpAddr::V4(ip)),
        IpAddr::V6(ip) => METADATA.contains(&IpAddr::V6(ip)),
    }
}

/// Returns whether an address belongs to this machine, so that listeners on all addresses answer there.
fn is_of_this_machine(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    let all: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: the system picks the source address, which equals the target for a local address.
    let from = || {
        let socket = UdpSocket::bind((all, 0)).ok()?;
        socket.connect((ip, DNS)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    ip.is_loopback() || ip.is_unspecified() || from() == Some(ip)
}

impl Rules {
    /// Connects to a UNIX socket with a path, in the host.
    pub(super) fn connect_path(
        &self,
        path: std::path::PathBuf,
        socket: OwnedFd,
        caller: Caller,
        listener: &Listener,
        asked: &PendingCall,
    ) -> Result<ConnectDecision, Errno> {
        use std::os::fd::AsRawFd as _;
        if !self.unix_sockets {
            let own = self.loopback.as_ref().ok_or(libc::EPERM)?.own();
            return unix_sockets::connect(own, path, socket, &caller, listener, asked);
        }
        // The service sees the host as its peer, which may have access that the caller lacks.
        if caller.user != rustix::process::geteuid().as_raw() {
            return Err(libc::EPERM);
        }
        let view = caller.view(listener, asked)?;
        Ok(ConnectDecision::Direct(Box::new(move |waits| {
            let found = view.find(&path)?;
            connect_while(&socket, &address::unix(found.as_raw_fd()), waits)
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_metadata_services() {
        for (ip, want) in [
            ("169.254.169.254", true),
            ("169.254.170.2", true),
            ("::ffff:169.254.169.254", true),
            ("100.100.100.200", true),
            ("192.0.0.192", true),
            ("fd00:ec2::254", true),
            ("fd20:ce::254", true),
            ("100.100.100.201", false),
            ("fd00:ec2::255", false),
            ("192.168.1.1", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(is_metadata(ip.parse().unwrap()), want, "{ip}");
        }
    }

    #[test]
    fn addresses_of_this_machine() {
        for (ip, want) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("::1", true),
            ("::", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.1", false),
        ] {
            assert_eq!(is_of_this_machine(ip.parse().unwrap()), want, "{ip}");
        }
    }
}
