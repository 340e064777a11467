//! JSON-RPC 2.0 over lines: bounded reading, and two sides that ask each other. See the crate's README.

mod lines;
mod message;
mod peer;
mod serve;

pub use lines::{Line, Lines};
pub use message::{Message, RpcError};
pub use peer::{Outbox, Peer};
pub use serve::{Answer, Limits, Service, serve};
