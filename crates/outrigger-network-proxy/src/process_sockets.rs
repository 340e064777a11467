//! The proxy's queries about processes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of `localhost`.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Determines the owners of local sockets. `outrigger-sandbox` reads them from `/proc`; a query may take some milliseconds.
pub trait ProcessSockets: Send + Sync {
    /// Returns whether a connection to this address and port goes to `pid` or one of its descendants, and to no other process.
    fn listens(&self, pid: u32, to: IpAddr, port: u16) -> bool;

    /// Returns the address of a server of this process, or of one of its descendants, under this host and port, on this machine's
    /// loopback and exclusively its own. `None` if there is none.
    fn own_server(&self, pid: u32, host: &str, port: u16) -> Option<IpAddr> {
        let named = match host.parse::<IpAddr>() {
            Ok(at) if at.to_canonical().is_loopback() => vec![at],
            Err(_) if host == "localhost" => LOCALHOST.to_vec(),
            _ => Vec::new(),
        };
        named.into_iter().find(|at| self.listens(pid, *at, port))
    }

    /// Returns which of these processes, or of their descendants, has an open connection from one local port to another.
    fn connects(&self, pids: &[u32], from: u16, to: u16) -> Option<usize>;
}
