//! Which hosts a process may reach, and the proxy that holds sandboxed processes to them.
//!
//! [`hosts`] has the lists: patterns, and which addresses are public. A [`Proxy`] is an HTTP proxy on loopback that knows who
//! asks by a token ([`ProxyTicket`]); it resolves names itself and connects to the address that it checked.
//!
//! What this crate is not for: starting processes and keeping them from connecting past the proxy. `outrigger-sandbox` does
//! that.

pub mod hosts;

mod process_sockets;
mod proxy;
mod redirect;

pub use process_sockets::ProcessSockets;
pub use proxy::{Client, ConnectFn, Connection, Proxy, ProxyTicket, Upstream};
pub use redirect::ProxyRedirect;
