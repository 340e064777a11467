//! The server side of MCP: what other agents ask of this one.
//!
//! [`Server`] answers messages for a [`Backend`]; [`stdio`] and [`http`] carry them. What this crate is not for: what a tool does,
//! who may call it, and who may connect.

mod exchange;
pub mod http;
mod server;
pub mod stdio;

pub use exchange::{Exchange, Level};
pub use server::{Backend, Caller, Server};
