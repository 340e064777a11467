//! `--strict-plugins`: a plugin that fails to load is an error.

use outrigger_config::Loaded;
use outrigger_plugins::{Plugins, Stage};

use crate::boot::options::Boot;
use crate::error::AgentError;

/// Whether all plugins that were to be loaded are.
///
/// # Errors
/// [`AgentError::StrictPlugins`] with every plugin that is not, where that is asked for. One that is left out on purpose
/// (`skipped`) is none of them.
pub(crate) fn check(boot: &Boot, config: &Loaded, plugins: &Plugins) -> Result<(), AgentError> {
    if !boot.strict.unwrap_or(config.settings.strict_plugins) {
        return Ok(());
    }
    let listed = plugins.list();
    let bad = listed
        .iter()
        .filter(|plugin| !matches!(plugin.stage, Stage::Active | Stage::Skipped));
    let failed: Vec<String> = bad
        .map(|plugin| match &plugin.cause {
            Some(cause) => format!(
                "{} is {} (while {}): {}",
                plugin.id, plugin.stage, cause.at, cause.message
            ),
            None => format!("{} is {}", plugin.id, plugin.stage),
        })
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(AgentError::StrictPlugins { failed })
    }
}
