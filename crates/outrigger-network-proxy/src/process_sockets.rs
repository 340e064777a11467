//! What the proxy asks about processes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What `localhost` leads to.
const LOCALHOST: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Whose sockets of this machine are. `outrigger-sandbox` reads it from `/proc`; an answer may take some milliseconds.
pub trait ProcessSockets: Send + Sync {
    /// Whether a connection to this address and port comes to `pid` or one of its descendants, and to nobody else.
    fn listens(&self, pid: u32, to: IpAddr, port: u16) -> bool;

    /// The address by which a client reaches a server of this process, or of one of its descendants, under this host and port: on this
    /// machine's loopback and nobody else's. `None` where there is none.
    fn own_server(&self, pid: u32, host: &str, port: u16) -> Option<IpAddr> {
        let named = match host.parse::<IpAddr>() {
            Ok(at) if at.to_canonical().is_loopback() => vec![at],
            Err(_) if host == "localhost" => LOCALHOST.to_vec(),
            _ => Vec::new(),
        };
        named.into_iter().find(|at| self.listens(pid, *at, port))
    }

    /// Which of these processes, or of their descendants, has a connection from one port of this machine to another open.
    fn connects(&self, pids: &[u32], from: u16, to: u16) -> Option<usize>;
}
