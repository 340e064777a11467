//! Plugins hosted by another plugin's manifest (C8): each in its own process, with the requested permissions that the
//! kernel's rule allows.

use std::path::Path;

use outrigger_config::PluginSpec;
use outrigger_kernel::subset;
use outrigger_plugin_package::{ResolvedPlugin, hosted_entry};
use outrigger_plugin_trust::Verified;
use outrigger_protocol::manifest::{Manifest, SubpluginDecl};

use crate::options::LoadOptions;
use outrigger_plugin_registry::access::manifest::{self, ManifestShown};
use outrigger_plugin_registry::access::settings::PluginRules;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Fresh, Plugin, Registry, UserGrants};

/// An admitted plugin whose manifest hosts others.
pub(crate) struct Host<'a> {
    pub(crate) index: usize,
    pub(crate) declared: &'a PluginSpec,
    pub(crate) resolved: ResolvedPlugin,
    pub(crate) rules: PluginRules,
    pub(crate) verified: Option<Verified>,
}

/// A hosted plugin, as the manifest of its host declares it.
#[derive(Clone, Copy)]
pub(crate) struct HostedDecl<'a> {
    /// The manifest of the host.
    pub(crate) manifest: &'a Manifest,
    /// Its entry there.
    pub(crate) decl: &'a SubpluginDecl,
}

/// Lists the plugins that a plugin hosts; those that may be started become ready.
pub(crate) fn admit(options: &LoadOptions, registry: &Registry, host: &Host<'_>) {
    let Some(manifest) = &host.resolved.manifest else {
        return;
    };
    for decl in &manifest.subplugins {
        list(options, registry, host, HostedDecl { manifest, decl });
    }
}

/// Lists one hosted plugin; returns its index.
pub(crate) fn list(
    options: &LoadOptions,
    registry: &Registry,
    host: &Host<'_>,
    declared: HostedDecl<'_>,
) -> usize {
    let id = subset::named(&host.resolved.id, &declared.decl.id);
    let index = registry.host(host.index, Plugin::found(id.clone(), host.declared));
    let gone = registry.with(host.index, Plugin::has_ended) != Some(false);
    let fresh = if gone {
        Err(PluginError::HostGone {
            id,
            host: host.resolved.id.clone(),
        })
    } else {
        fresh(options, host, declared)
    };
    match fresh {
        Ok(fresh) => {
            registry.resolved(index, fresh.resolved, fresh.rules);
            registry.verified(index, fresh.verified);
            if let Some(shown) = fresh.shown {
                registry.manifest(index, shown);
            }
        }
        Err(error) => registry.fail(index, &error),
    }
    index
}

/// A hosted plugin as its host's manifest has it now.
///
/// # Errors
/// `plugin.disabled`, and what is wrong with its entry.
pub(crate) fn fresh(
    options: &LoadOptions,
    host: &Host<'_>,
    declared: HostedDecl<'_>,
) -> Result<Fresh, PluginError> {
    let id = subset::named(&host.resolved.id, &declared.decl.id);
    let settings = options.settings.rules(&id, &id, host.declared.scope);
    if settings.is_off(host.declared) {
        return Err(PluginError::Disabled { spec: id });
    }
    let resolved = resolved(host, declared.decl, &id)?;
    let (rules, shown) = granted(&options.directory, host, declared, &settings);
    for withheld in &shown.withheld {
        tracing::warn!("plugin {id}: it is not given {withheld}");
    }
    Ok(Fresh {
        resolved,
        rules,
        verified: host.verified.clone(),
        shown: Some(shown),
    })
}

/// Returns the same package with another entry and a manifest of what both allow.
fn resolved(host: &Host<'_>, own: &SubpluginDecl, id: &str) -> Result<ResolvedPlugin, PluginError> {
    let (file, entry) = hosted_entry(&host.resolved, &own.entry)?;
    let manifest = host.resolved.manifest.as_deref();
    Ok(ResolvedPlugin {
        id: id.to_owned(),
        entry,
        file,
        options: None,
        tools: None,
        manifest: manifest.map(|it| Box::new(subset::hosted(it, own).0)),
        ..host.resolved.clone()
    })
}

/// Returns its rules: its host's, restricted. User settings under its own name can only restrict further.
fn granted(
    project: &Path,
    host: &Host<'_>,
    declared: HostedDecl<'_>,
    settings: &PluginRules,
) -> (PluginRules, ManifestShown) {
    let mut rules = PluginRules {
        // A failure of the hosted plugin is not a failure of its host.
        fail_closed: settings.fail_closed.clone(),
        hook_deadline: settings.hook_deadline.or(host.rules.hook_deadline),
        // These are its host's.
        user_grants: UserGrants::default(),
        ..host.rules.clone()
    };
    let (cut, lost) = subset::hosted(declared.manifest, declared.decl);
    let mut shown = manifest::apply(&cut, project, &mut rules);
    let lost = lost
        .into_iter()
        .map(|it| format!("{it}: its host {} does not have it", host.resolved.id));
    shown.withheld.extend(lost);
    if let Some(access) = &mut rules.access {
        access.hosted = true;
        // What its host may not do it may not do either, whatever it declares.
        access.named &= declared.manifest.hook_policy.allowed_hooks.is_some();
        shown.hooks = access.hooks_shown(&rules.fail_closed);
    }
    (rules, shown)
}
