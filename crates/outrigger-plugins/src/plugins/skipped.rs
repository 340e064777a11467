//! Entries that are not loaded: their reasons, and whether they are missed as guards.

use std::path::Path;

use outrigger_config::{PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin};

use crate::options::LoadOptions;
use outrigger_plugin_registry::access::critical;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Plugin, Registry};

/// Returns whether what a skipped entry guards is refused: not if `plugin bisect` excluded it, or if another entry for the same
/// plugin is used.
pub(super) fn guards(reason: &SkipReason) -> bool {
    match reason {
        SkipReason::LeftOut | SkipReason::Overridden { .. } | SkipReason::Replaced => false,
        SkipReason::NotAdmitted { reason, .. } => reason != "LeftOut",
        SkipReason::Pure | SkipReason::Policy { .. } => true,
    }
}

pub(super) fn why_skipped(skipped: &SkippedPlugin) -> PluginError {
    let spec = skipped.plugin.spec.clone();
    match &skipped.reason {
        SkipReason::Pure => PluginError::Pure { spec },
        SkipReason::LeftOut => PluginError::LeftOut { spec },
        SkipReason::Policy { file } => PluginError::Forbidden {
            spec,
            file: file.clone(),
        },
        SkipReason::Replaced => PluginError::Replaced { spec },
        SkipReason::NotAdmitted {
            id,
            reason,
            why,
            remedy,
        } => PluginError::NotAdmitted {
            id: id.clone(),
            reason: reason.clone(),
            why: why.clone(),
            remedy: remedy.clone(),
        },
        SkipReason::Overridden {
            spec: other,
            declared_in,
        } => PluginError::Overridden {
            spec,
            other: other.clone(),
            declared_in: declared_in.clone(),
        },
    }
}

/// Lists the plugins that the machine policy requires and that are missing: what they guard is refused. A project's plugin of
/// that name does not satisfy the policy.
pub(super) fn required(options: &LoadOptions, registry: &Registry) {
    for file in &options.settings.policies {
        for id in file.policy.plugins.require.keys() {
            let is = |plugin: &Plugin| !plugin.local && plugin.id == *id;
            let mut all = 0..registry.count();
            if options.bundled.contains(id) || all.any(|at| registry.with(at, is) == Some(true)) {
                continue;
            }
            let declared = PluginSpec {
                spec: id.clone(),
                options: None,
                declared_in: file.path.clone(),
                source: PluginSource::Config,
                scope: PluginScope::Global,
            };
            let index = registry.push(Plugin::found(id.clone(), &declared));
            registry.set_rules(index, options.settings.rules(id, id, PluginScope::Global));
            let error = PluginError::Required {
                id: id.clone(),
                file: file.path.clone(),
            };
            registry.fail(index, &error);
        }
    }
}

/// Lists the guards that the settings name and that are missing: what they guard is refused.
pub(super) fn no_guard(options: &LoadOptions, registry: &Registry) {
    let settings = &options.settings;
    for (id, rules) in &settings.plugins {
        let guards =
            critical::points(rules).next().is_some() || critical::misnamed(rules).is_some();
        if !guards || options.bundled.contains(id) || is_of_another_folder(options, id) {
            continue;
        }
        // A listed entry that another one replaces has no rules.
        let stands = |plugin: &Plugin| {
            let mut hooks = rules.fail_closed.iter();
            plugin.goes_by(id) && hooks.all(|hook| plugin.rules.fail_closed.contains(hook))
        };
        let mut all = 0..registry.count();
        if all.any(|at| registry.with(at, stands) == Some(true)) {
            continue;
        }
        let declared = PluginSpec {
            spec: id.clone(),
            options: None,
            declared_in: options.directory.clone(),
            source: PluginSource::Config,
            scope: PluginScope::Global,
        };
        let index = registry.push(Plugin::found(id.clone(), &declared));
        registry.set_rules(index, rules.clone());
        registry.fail(index, &PluginError::NoGuard { id: id.clone() });
    }
}

/// Returns whether a user setting of this name may be about a plugin of another folder: the path of an existing file that is
/// neither in this project nor among the user's own plugins, or the command hooks of a project, which not every project has.
fn is_of_another_folder(options: &LoadOptions, id: &str) -> bool {
    let is_projects = matches!(id, "claude:project" | "claude:local");
    if is_projects {
        let by_user = options.settings.without_project.get(id);
        return by_user.is_none_or(|it| it.as_ref().is_some_and(|it| !it.fail_closed.is_empty()));
    }
    let path = Path::new(id);
    let users = options.user_config.as_deref().and_then(Path::parent);
    let worktree = Some(options.worktree.as_path()).filter(|it| it.parent().is_some());
    let own = [Some(options.directory.as_path()), worktree, users];
    path.is_absolute() && path.exists() && !own.iter().flatten().any(|own| path.starts_with(own))
}
