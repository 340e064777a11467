//! The server side of MCP: requests of other agents to this one.
//!
//! [`Server`] answers messages for a [`Backend`]; [`stdio`] and [`http`] transport them. This crate does not decide what a tool
//! does, who may call it, or who may connect.

mod exchange;
pub mod http;
mod server;
pub mod stdio;

pub use exchange::{Exchange, Level};
pub use server::{Backend, Caller, Server};
