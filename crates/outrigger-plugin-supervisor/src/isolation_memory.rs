//! Plugins that were found to provide authentication: at the next start they get their own process at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_plugin_registry::Registry;

fn file(data: &Path) -> PathBuf {
    data.join("plugins-apart.json")
}

fn known(data: &Path) -> BTreeSet<String> {
    outrigger_files::read(&file(data), outrigger_files::DATA)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// Marks the plugins that an earlier start found to provide authentication for their own process.
pub fn recall(data: &Path, registry: &Registry) {
    let known = known(data);
    for index in 0..registry.count() {
        if registry.with(index, |plugin| known.contains(&plugin.id)) == Some(true) {
            registry.set_apart(index);
        }
    }
}

/// Stores which plugins provide authentication. This is a hint: if it cannot be written, it is found out again.
pub fn remember(data: &Path, registry: &Registry) {
    let mut all = known(data);
    let before = all.len();
    let found = (0..registry.count()).filter(|index| registry.brings_auth(*index));
    all.extend(found.filter_map(|index| registry.with(index, |plugin| plugin.id.clone())));
    if all.len() == before {
        return;
    }
    let text = serde_json::to_vec(&all).unwrap_or_default();
    if let Err(error) = std::fs::write(file(data), text) {
        tracing::debug!("[plugin] cannot write {}: {error}", file(data).display());
    }
}
