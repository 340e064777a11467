//! Server-sent events.

pub(crate) mod backlog;
pub(crate) mod stream;
