//! What the audit (C13) keeps of processes, connections and the life of plugins, and what must not get into it. Permissions and
//! the intents of tool calls are the agent's.

mod plugins;
mod processes;
mod secrets;

pub use plugins::{grants, notice, progress};
pub use processes::{connection, recorded};
pub use secrets::{credential_watcher, prepare};
