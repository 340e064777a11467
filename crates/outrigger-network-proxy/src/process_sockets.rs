//! What the proxy asks about processes.

use std::net::IpAddr;

/// Whose sockets of this machine are. `outrigger-sandbox` reads it from `/proc`; an answer may take some milliseconds.
pub trait ProcessSockets: Send + Sync {
    /// Whether a connection to this address and port comes to `pid` or one of its descendants, and to nobody else.
    fn listens(&self, pid: u32, to: IpAddr, port: u16) -> bool;

    /// Which of these processes, or of their descendants, has a connection from one port of this machine to another open.
    fn connects(&self, pids: &[u32], from: u16, to: u16) -> Option<usize>;
}
