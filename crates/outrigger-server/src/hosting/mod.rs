//! Which agent answers a request: folders, plugins and clients in process.

pub(crate) mod client;
pub(crate) mod dispatch;
pub(crate) mod hub;
pub(crate) mod in_process;
pub(crate) mod renew;
