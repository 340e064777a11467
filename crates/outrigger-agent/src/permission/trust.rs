//! Trust in folders and their settings, for the folder of an agent.

use std::path::Path;

use outrigger_config::LoadOptions;
use outrigger_permissions::{ConfigSource, folder_trust, workspace_trust};
use outrigger_workspace::{Folders, ProjectLocation};

use crate::boot::options::Boot;
use crate::error::AgentError;
use crate::state::Agent;

impl ConfigSource for Boot {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn folders(&self) -> &Folders {
        &self.folders
    }

    fn options(&self, location: &ProjectLocation) -> LoadOptions {
        self.config_options(location)
    }
}

/// Settings of the folder's project that no agent starts with, since they changed while something in a sandbox ran.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub async fn waiting_settings(boot: &Boot) -> Result<Vec<String>, AgentError> {
    let location = ProjectLocation::find(&boot.directory);
    let config = boot.load(&location)?;
    Ok(workspace_trust::changed(boot, &location, &config).await?)
}

/// Asks the user whether the folder's settings take effect, if they do not yet: the first step of the start of an agent.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub async fn confirm_folder_trust(boot: &Boot) -> Result<(), AgentError> {
    let location = ProjectLocation::find(&boot.directory);
    let config = boot.load(&location)?;
    let settled = folder_trust::settle(boot, boot.trust_folder.as_ref(), &location, config, None);
    Ok(settled.await.map(drop)?)
}

impl Agent {
    /// Returns project settings that changed since the start and not through Outrigger's tools. Nothing can be started while
    /// there are any.
    pub async fn changed_settings(&self) -> Vec<String> {
        match &self.state.permissions.workspace_trust {
            Some(workspace_trust) => workspace_trust.changed().await,
            None => Vec::new(),
        }
    }
}
