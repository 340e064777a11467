//! Server-sent events.

pub(crate) mod backlog;
pub(crate) mod lines;
pub(crate) mod stream;
