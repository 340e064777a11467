//! Entries that are not loaded: what that is called, and whether they are missed.

use outrigger_config::{PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin};

use crate::options::LoadOptions;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Plugin, Registry};

/// Whether what an entry was to guard is refused without it: not when everything was left out together, nor when another
/// entry for the same plugin counts.
pub(super) fn guards(reason: &SkipReason) -> bool {
    match reason {
        SkipReason::Pure
        | SkipReason::LeftOut
        | SkipReason::Overridden { .. }
        | SkipReason::Replaced => false,
        SkipReason::NotAdmitted { reason, .. } => reason != "LeftOut",
        SkipReason::Policy { .. } => true,
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

/// Lists what the policy of the machine requires and nobody brings: what it was to guard is refused. A project's plugin of that
/// name does not stand for it.
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
