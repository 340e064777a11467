//! Audit records (C13) of processes, connections and the lifecycle of plugins, and the secrets that must not be recorded. The
//! agent records permissions and the intents of tool calls.

mod plugins;
mod processes;
mod secrets;

pub use plugins::{grants, notice, progress};
pub use processes::{connection, recorded};
pub use secrets::{credential_watcher, prepare, redact};
