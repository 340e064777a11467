//! Transports: standard input and output, streamable HTTP, the older event streams.

pub(crate) mod http;
pub(crate) mod incoming;
pub(crate) mod pending;
pub(crate) mod quota;
pub(crate) mod remote;
pub(crate) mod sse;
pub(crate) mod stdio;
