//! The hosts that a process may connect to, and the proxy that enforces this for sandboxed processes.
//!
//! [`hosts`] contains the lists: patterns, and the classification of public addresses. A [`Proxy`] is an HTTP proxy on
//! loopback that identifies clients by a token ([`ProxyTicket`]); it resolves names itself and connects to the address that
//! it checked.
//!
//! This crate does not start processes or keep them from bypassing the proxy; `outrigger-sandbox` does.

pub mod hosts;

mod process_sockets;
mod proxy;
mod redirect;

pub use process_sockets::ProcessSockets;
pub use proxy::{CheckFn, Client, ConnectFn, Connection, Proxy, ProxyTicket, Upstream};
pub use redirect::ProxyRedirect;
