//! The processes of plugins: starting them, what they use, who is to blame, starting them again.

pub(crate) mod blame;
pub(crate) mod cpu_accounting;
pub(crate) mod group;
pub(crate) mod health;
pub(crate) mod host_proxy;
pub(crate) mod isolation_memory;
pub(crate) mod launch;
pub(crate) mod process_assignment;
pub(crate) mod processes;
pub(crate) mod resource_limits;
pub(crate) mod stale_masks;
pub(crate) mod waiting;
pub(crate) mod watch;
