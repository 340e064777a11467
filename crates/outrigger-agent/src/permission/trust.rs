//! Trust in folders and their settings, for the folder of an agent.

use std::path::Path;

use outrigger_config::LoadOptions;
use outrigger_permissions::folder_trust::FolderQuestion;
use outrigger_permissions::workspace_trust::Rewritten;
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

    fn options(&self, place: &ProjectLocation) -> LoadOptions {
        self.config_options(place)
    }
}

/// Lets the settings of a folder count as they are now, and says what they ask for.
///
/// # Errors
/// Those of the configuration and of the data folder; a policy that lets no project count.
pub fn trust_folder(boot: &Boot) -> Result<FolderQuestion, AgentError> {
    Ok(folder_trust::trust_folder(boot)?)
}

/// Forgets that a folder was trusted; false where it was not.
///
/// # Errors
/// Those of the data folder.
pub fn distrust_folder(boot: &Boot) -> Result<bool, AgentError> {
    Ok(folder_trust::distrust_folder(boot)?)
}

/// Lets the settings of the folder's project count as they are, and says which were not as they had been.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub fn allow_settings(boot: &Boot) -> Result<Vec<String>, AgentError> {
    Ok(workspace_trust::allow_settings(boot)?)
}

/// Settings of the folder's project that no agent starts with, since they changed while something in a sandbox ran.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub async fn waiting_settings(boot: &Boot) -> Result<Vec<String>, AgentError> {
    let place = ProjectLocation::find(&boot.directory);
    let config = boot.load(&place)?;
    Ok(workspace_trust::changed(boot, &place, &config).await?)
}

/// Asks whether the folder's settings are to count, where they do not and somebody is there: what the start of an agent does
/// first.
///
/// # Errors
/// Those of the configuration and of the data folder.
pub async fn settle_folder(boot: &Boot) -> Result<(), AgentError> {
    let place = ProjectLocation::find(&boot.directory);
    let config = boot.load(&place)?;
    let settled = folder_trust::settle(boot, boot.trust_folder.as_ref(), &place, config, None);
    Ok(settled.await.map(drop)?)
}

/// Accepts a settings file as the user wrote it, if it was accepted before. Blocking.
pub fn count_settings(boot: &Boot, file: &Path, change: &Rewritten) {
    workspace_trust::count_settings(boot, file, change);
}

impl Agent {
    /// Returns project settings that changed since the start and not through Outrigger's tools. Nothing can be started while
    /// there are any.
    pub async fn changed_settings(&self) -> Vec<String> {
        match &self.inner.workspace_trust {
            Some(workspace_trust) => workspace_trust.changed().await,
            None => Vec::new(),
        }
    }
}
