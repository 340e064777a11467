//! Inspections that start nothing: `outrigger plugin review` and `verify`.

use outrigger_plugins::Snapshot;
use outrigger_sandbox::Spawner;
use outrigger_workspace::ProjectLocation;

use crate::boot::options::Boot;
use crate::boot::start::worktree;
use crate::error::AgentError;

/// What `outrigger plugin review` looks at: the plugins and tool files of a folder, none of them started.
///
/// # Errors
/// A configuration that cannot be read, a process that cannot start others.
pub fn review_options(boot: &Boot) -> Result<outrigger_plugins::ReviewOptions, AgentError> {
    let location = ProjectLocation::find(&boot.directory);
    let config = boot.load(&location)?;
    let (mut plugins, skipped) = Snapshot::of(&config, &boot.folders.data).to_load(&config);
    // A plugin can be inspected before it is trusted.
    plugins.extend(skipped_for(&skipped, "Untrusted"));
    plugins.extend(skipped_for(&skipped, "FolderNotTrusted"));
    Ok(outrigger_plugins::ReviewOptions {
        plugins,
        rules: config.settings.trust.clone(),
        data: boot.folders.data.clone(),
        cache: boot.folders.cache.clone(),
        project: outrigger_plugins::project_of(&location.directory, &worktree(&location)),
        spawner: Spawner::new()?,
    })
}

/// The same for `outrigger plugin verify`: with the plugins that are left out for their signature.
///
/// # Errors
/// As [`review_options`].
pub fn verify_options(boot: &Boot) -> Result<outrigger_plugins::ReviewOptions, AgentError> {
    let mut options = review_options(boot)?;
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
    let (_, skipped) = Snapshot::of(&config, &boot.folders.data).to_load(&config);
    options.plugins.extend(skipped_for(&skipped, "Signature"));
    Ok(options)
}

fn skipped_for(
    skipped: &[outrigger_config::SkippedPlugin],
    why: &str,
) -> impl Iterator<Item = outrigger_config::PluginSpec> {
    let of = move |it: &&outrigger_config::SkippedPlugin| matches!(&it.reason, outrigger_config::SkipReason::NotAdmitted { reason, .. } if reason == why);
    skipped.iter().filter(of).map(|it| it.plugin.clone())
}
