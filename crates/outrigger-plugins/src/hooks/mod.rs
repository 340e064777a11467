//! The hook chains: calling handlers, their payloads, breakers, costs and records.

pub(crate) mod breakers;
pub(crate) mod cost;
pub(crate) mod digest;
pub(crate) mod failures;
pub(crate) mod hook_audit;
pub(crate) mod host;
pub(crate) mod payload;
pub(crate) mod perf;
pub(crate) mod pipeline;
pub(crate) mod reconfigure;
