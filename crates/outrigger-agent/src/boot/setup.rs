//! Operations on a folder or the machine that need no agent: reading policies, installing the dependencies of plugins.

use outrigger_plugins::{Installer, PluginError, PluginSettings};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::Spawner;
use outrigger_workspace::ProjectLocation;

use crate::boot::options::{Boot, describe};
use crate::error::AgentError;

/// The policies of the machine that hold in a folder.
///
/// # Errors
/// A configuration that cannot be read.
pub fn policies(boot: &Boot) -> Result<Vec<outrigger_config::PolicyFile>, AgentError> {
    Ok(boot.load(&ProjectLocation::find(&boot.directory))?.policies)
}

/// Installs what plugins need of npm ahead of their first use, Bun included where there is none, and says what is there.
///
/// # Errors
/// Those of the installation.
pub async fn setup_plugins(boot: &Boot) -> Result<Vec<String>, PluginError> {
    let spawner = Spawner::new().map_err(|e| PluginError::NoRuntime {
        message: e.to_string(),
        hint: e.hint(),
    })?;
    let lookup = boot.runtimes();
    let installer = Installer::find_in(lookup.bun.as_deref(), &lookup.path);
    let modules =
        outrigger_plugins::setup(&boot.folders.data, installer.as_ref(), &spawner).await?;
    // An unreadable project configuration must not prevent preparing the machine.
    let settings = boot
        .load(&ProjectLocation::find(&boot.directory))
        .map(|config| config.settings)
        .unwrap_or_default();
    let settings = PluginSettings::from(&settings);
    let runtime = outrigger_plugins::setup_runtime(
        &settings,
        &lookup,
        &boot.folders.data,
        &spawner,
        &boot.progress,
    )
    .await?;
    Ok(vec![
        format!("SDK in {}", modules.root.display()),
        describe(&runtime),
    ])
}
