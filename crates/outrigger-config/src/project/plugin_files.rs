//! Files of a project's plugin that is a folder: its manifest, the files that the manifest and `package.json` load, and the code
//! next to them. Files loaded by these are known once the plugin was started.

use std::path::{Path, PathBuf};

use outrigger_protocol::manifest::MANIFEST_FILE;
use serde_json::Value;

use crate::opencode::plugin_list;
use crate::paths;
use crate::project::TrustRequest;
use crate::project::named_files::{Search, is_plugin};
use crate::project::packages;

/// Adds the files of a plugin, if the request is one in a folder of the project. `declared_in` is the base folder of its path.
pub(super) fn of(search: &mut Search<'_>, ask: &TrustRequest, declared_in: &Path) {
    let Some(folder) = folder_of(ask, declared_in, &search.options.home) else {
        return;
    };
    if !search.is_projects(&folder) || !folder.is_dir() {
        return;
    }
    let by = format!("{} {}", ask.file, ask.what);
    let manifest = folder.join(MANIFEST_FILE);
    if search.file(&manifest, &by)
        && let Some(entry) = entry_of(&manifest)
    {
        search.file(&folder.join(entry), &by);
    }
    packages::folder(search, &folder, &by);
}

fn folder_of(ask: &TrustRequest, declared_in: &Path, home: &Path) -> Option<PathBuf> {
    if !is_plugin(&ask.what) {
        return None;
    }
    // `["./x", {}]`
    let spec = match &ask.value {
        Value::Array(pair) => pair.first()?.as_str()?,
        spec => spec.as_str()?,
    };
    paths::from_file_url(&plugin_list::resolve(spec, declared_in, home))
}

fn entry_of(manifest: &Path) -> Option<String> {
    let text = outrigger_files::read_to_string(manifest, outrigger_files::SETTINGS).ok()?;
    let table: toml::Table = text.parse().ok()?;
    Some(table.get("entry")?.as_str()?.to_owned())
}
