//! From what the configuration of a folder is read.

use std::path::Path;

use outrigger_config::{ConfigError, LoadOptions, Loaded};
use outrigger_workspace::{Folders, ProjectLocation};

/// What trust needs to know of the start of an agent.
pub trait ConfigSource: Sync {
    /// The folder that the agent is started in.
    fn directory(&self) -> &Path;

    /// Where Outrigger keeps its files.
    fn folders(&self) -> &Folders;

    /// From what the configuration of a place is read.
    fn options(&self, place: &ProjectLocation) -> LoadOptions;

    /// Reads the configuration of a place.
    ///
    /// # Errors
    /// Those of the configuration.
    fn load_config(&self, place: &ProjectLocation) -> Result<Loaded, ConfigError> {
        outrigger_config::load(&self.options(place))
    }
}
