//! From the entries of the configuration to the plugins that may be started: found, installed where they have to be,
//! switched on, and trusted as they are.

use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _};
use outrigger_config::PluginSpec;

use crate::error::PluginError;
use crate::install::Cache;
use crate::plugins::{LoadOptions, resolve};
use crate::registry::Registry;
use crate::resolve::ResolvedPlugin;
use crate::spec::Source;
use crate::status::Stage;
use crate::trust::{Gate, Verified};

/// How many plugins are installed at once.
const INSTALLING: usize = 4;

pub(crate) async fn resolve_all(options: &LoadOptions, registry: &Registry, cache: &Cache) {
    // Collected: a lazy iterator with this closure, held over an await, keeps the whole start from being spawned as a task.
    let work: Vec<_> = options
        .plugins
        .iter()
        .enumerate()
        .map(|(index, plugin)| async move {
            (
                index,
                resolve(plugin, cache, |grown| match grown {
                    None => registry.stage(index, Stage::Installing),
                    Some(bytes) => registry.fetched(index, bytes),
                })
                .await,
            )
        })
        .collect();
    let mut done: Vec<_> = stream::iter(work).buffered(INSTALLING).collect().await;
    let mut taken: Vec<String> = Vec::new();
    let gate = gate(options);
    for (index, result) in done.drain(..) {
        let result = match (result, options.plugins.get(index)) {
            (Ok(resolved), Some(declared)) => verified(options, &gate, declared, resolved).await,
            (result, _) => result.map(|resolved| (resolved, None)),
        };
        match result {
            Ok((mut resolved, verified)) => {
                let declared = options.plugins.get(index);
                let source = declared.and_then(|it| Source::parse(&it.spec, &it.declared_in).ok());
                let (rules, withheld) =
                    options
                        .settings
                        .rules_for(&resolved.id, &resolved.spec, source.as_ref());
                if let Some(withheld) = withheld {
                    tracing::warn!("plugin {}: {withheld}", resolved.id);
                }
                if rules.disabled {
                    registry.set_rules(index, rules);
                    registry.fail(
                        index,
                        &PluginError::Disabled {
                            spec: resolved.spec,
                        },
                    );
                    continue;
                }
                // Two files of the same name are two plugins; the second must be told apart.
                let alike = taken.iter().filter(|id| **id == resolved.id).count();
                taken.push(resolved.id.clone());
                if alike > 0 {
                    resolved.id = format!("{}#{}", resolved.id, alike + 1);
                }
                registry.resolved(index, resolved, rules);
                registry.verified(index, verified);
            }
            Err(error) => {
                absent_with_rules(options, registry, index);
                registry.fail(index, &error);
            }
        }
    }
}

/// Who decides about trust; why nobody can where what is trusted cannot be read.
fn gate(options: &LoadOptions) -> Result<Gate, PluginError> {
    let project = project_of(&options.directory, &options.worktree);
    Ok(Gate {
        rules: options.settings.trust.clone(),
        data: options.data.clone(),
        fresh: Gate::is_fresh(&options.data, &project, &options.plugins)?,
        project,
        ask: options.trust.clone(),
        now: (options.now)(),
    })
}

/// The folder whose plugins are a project's own: the root of the working tree, outside version control the folder itself.
#[must_use]
pub fn project_of(directory: &Path, worktree: &Path) -> PathBuf {
    match worktree.parent() {
        Some(_) => worktree.to_owned(),
        None => directory.to_owned(),
    }
}

/// A plugin that may be started as it is. One that is switched off is not asked about.
async fn verified(
    options: &LoadOptions,
    gate: &Result<Gate, PluginError>,
    declared: &PluginSpec,
    resolved: ResolvedPlugin,
) -> Result<(ResolvedPlugin, Option<Verified>), PluginError> {
    let source = Source::parse(&declared.spec, &declared.declared_in).ok();
    let (rules, _) = options
        .settings
        .rules_for(&resolved.id, &resolved.spec, source.as_ref());
    if rules.disabled {
        return Ok((resolved, None));
    }
    let gate = match gate {
        Ok(gate) => gate,
        Err(error) => {
            return Err(PluginError::Unreviewable {
                spec: declared.spec.clone(),
                reason: error.to_string(),
            });
        }
    };
    let verified = gate.check(declared, &resolved).await?;
    Ok((resolved, Some(verified)))
}

/// One that cannot be loaded keeps its rules: what it was to guard is refused.
pub(crate) fn absent_with_rules(options: &LoadOptions, registry: &Registry, index: usize) {
    let rules = registry.with(index, |plugin| {
        options.settings.rules(&plugin.id, &plugin.spec)
    });
    registry.set_rules(index, rules.unwrap_or_default());
}
