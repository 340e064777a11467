//! The streams of a program: lines, and JSON-RPC on them.

pub(crate) mod lines;
pub(crate) mod rpc;
