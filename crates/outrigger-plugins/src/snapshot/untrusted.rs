//! An untrusted project plugin cannot shadow another plugin: one that would is checked before anything is loaded. Rare,
//! so its files are read synchronously.

use std::path::Path;

use outrigger_config::settings::{TrustChanges, TrustProjects};
use outrigger_config::{Loaded, PluginSpec};
use outrigger_plugin_package::Source as Spec;
use outrigger_plugin_package::{ResolvedPlugin, resolve_path};
use outrigger_plugin_trust::{Before, Content, Gate, Store};

use super::candidates::DiscoveredPlugin;

/// Marks project candidates that have the id of a candidate from another source and are not trusted in their current
/// state.
pub(super) fn untrusted(config: &Loaded, data: &Path, known: &mut [DiscoveredPlugin]) {
    let ours: Vec<String> = known
        .iter()
        .filter(|it| !it.candidate.of_project && it.candidate.has_own_id)
        .map(|it| it.candidate.id.clone())
        .collect();
    let local: Vec<PluginSpec> = known
        .iter()
        .filter(|it| it.candidate.of_project)
        .filter_map(|it| it.plugin.clone())
        .collect();
    for it in known {
        let candidate = &mut it.candidate;
        let takes = candidate.of_project && candidate.has_own_id && ours.contains(&candidate.id);
        if let (true, Some(plugin), None) = (takes, &it.plugin, &candidate.unsupported) {
            candidate.untrusted = why(config, data, plugin, &candidate.id, &local);
        }
    }
}

/// Returns why a plugin would not be started without asking the user; the gate makes the same decision later, and nothing
/// is written here.
fn why(
    config: &Loaded,
    data: &Path,
    plugin: &PluginSpec,
    id: &str,
    local: &[PluginSpec],
) -> Option<String> {
    let Ok(Spec::Path(path)) = Spec::parse(&plugin.spec, &plugin.declared_in) else {
        return None;
    };
    let resolved = resolve_path(&plugin.spec, id, &path).ok()?;
    let rules = &config.settings.trust;
    let project = config.project_folder();
    let store = Store::of(data, &project, plugin);
    match store.find(&plugin.key()) {
        Err(error) => Some(error.to_string()),
        Ok(Some(_)) if rules.changes == TrustChanges::Allow => None,
        Ok(Some(known)) => {
            let before = store.before(&plugin.key());
            (hash(&resolved, rules.world_writable, &before) != Some(known.hash))
                .then(|| "its files are not those that were trusted".to_owned())
        }
        Ok(None) => match rules.projects {
            TrustProjects::Trust if rules.changes == TrustChanges::Allow => None,
            TrustProjects::Trust => (!Gate::is_fresh(data, &project, local).unwrap_or(false))
                .then(|| "it was added since the project's plugins were trusted".to_owned()),
            TrustProjects::Ask => Some("plugins of projects need approval".to_owned()),
            TrustProjects::Deny => {
                Some("plugins of projects are denied (`trust.projects`)".to_owned())
            }
        },
    }
}

fn hash(resolved: &ResolvedPlugin, world_writable: bool, before: &Before) -> Option<String> {
    Content::of(resolved, world_writable, before)
        .ok()
        .map(|content| content.hash())
}
