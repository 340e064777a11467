//! Source of a folder's configuration.

use std::path::Path;

use outrigger_config::{ConfigError, LoadOptions, Loaded};
use outrigger_workspace::{Folders, ProjectLocation};

/// Start options of an agent that trust depends on.
pub trait ConfigSource: Sync {
    /// Returns the folder that the agent is started in.
    fn directory(&self) -> &Path;

    /// Returns the folders of Outrigger.
    fn folders(&self) -> &Folders;

    /// Returns the options for loading the configuration of a project.
    fn options(&self, location: &ProjectLocation) -> LoadOptions;

    /// Reads the configuration of a place.
    ///
    /// # Errors
    /// Those of the configuration.
    fn load_config(&self, location: &ProjectLocation) -> Result<Loaded, ConfigError> {
        outrigger_config::load(&self.options(location))
    }
}
