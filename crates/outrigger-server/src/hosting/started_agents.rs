//! The list of the agents that plugins' requests started.

use std::collections::HashMap;
use std::path::PathBuf;

use tokio::sync::Mutex;

/// The agents that plugins' requests started, by the root of their project.
#[derive(Default)]
pub(crate) struct PluginAgents {
    pub(super) projects: Mutex<HashMap<PathBuf, Vec<Started>>>,
}

/// An agent that a plugin's request started.
pub(super) struct Started {
    pub(super) folder: PathBuf,
    /// It has not been started yet.
    pub(super) pending: bool,
}
