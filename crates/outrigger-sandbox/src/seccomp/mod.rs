//! Filters of system calls, and decisions about `connect`, `bind` and `listen` made by the host.

pub(crate) mod calls;
pub(crate) mod connects;
