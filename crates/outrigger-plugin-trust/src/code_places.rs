//! Folders and files of a plugin's code that its process may read.
//!
//! A package has its folder. The folder of a single file may contain anything: `"plugin": ["~/guard.js"]` must not expose
//! the home folder. So a file has its folder only if that is a plugin folder or a separate package; otherwise it has just
//! itself and what it imports. All of them also get the `node_modules` around them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outrigger_plugin_package::ResolvedPlugin;
use outrigger_protocol::manifest::MANIFEST_FILE;

use crate::tree::{SOURCES, Tree, What};

/// Names of configuration folders for plugins and tools.
const FOR_PLUGINS: [&str; 4] = ["plugin", "plugins", "tool", "tools"];

/// Returns folders and files of the plugin. Blocking.
#[must_use]
pub fn of(plugin: &ResolvedPlugin, project: [&Path; 2]) -> Vec<PathBuf> {
    let folder = &plugin.dir;
    let holds = |name: &str| folder.join(name).is_file();
    let is_its_own = !plugin.is_file()
        || holds("package.json")
        || holds(MANIFEST_FILE)
        || FOR_PLUGINS
            .iter()
            .any(|name| folder.file_name().is_some_and(|it| it == *name));
    if is_its_own && !is_wide(folder, project) {
        return vec![folder.clone()];
    }
    let Ok(base) = folder.canonicalize() else {
        return Vec::new();
    };
    let mut places = plugin.entries.clone();
    places.retain(|entry| is_below(entry, &base));
    // Its imports are what was checked before it was trusted. If that fails, it is not started.
    if let Ok(tree) = Tree::of(plugin, true) {
        let own = tree.found.into_values().filter(|found| found.own);
        let files = own.filter(|it| matches!(it.what, What::File(_)));
        // Naming a file in an import does not give access to it.
        let named = |path: &PathBuf| is_source(path) && is_below(path, &base);
        places.extend(files.map(|it| it.path).filter(named));
    }
    places.sort();
    places.dedup();
    places
}

/// Returns whether a file is in the folder, not behind a link that points outside, and not in a hidden folder.
fn is_below(file: &Path, base: &Path) -> bool {
    let real = file.canonicalize().ok();
    let below = real.as_ref().and_then(|real| real.strip_prefix(base).ok());
    let hidden = |part: &OsStr| part.as_encoded_bytes().starts_with(b".");
    below.is_some_and(|below| !below.iter().any(hidden))
}

fn is_source(path: &Path) -> bool {
    path.extension()
        .and_then(OsStr::to_str)
        .is_some_and(|it| SOURCES.contains(&it))
}

/// Returns whether a folder is the user's home, or contains it or the project: no plugin is that large.
fn is_wide(folder: &Path, project: [&Path; 2]) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    is_above_home(&real)
        || project
            .iter()
            .any(|project| project.starts_with(&real) && *project != real)
}

/// Returns whether it is the user's home folder or contains it.
pub(crate) fn is_above_home(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.parent().is_some());
    let real = home.as_ref().and_then(|home| home.canonicalize().ok());
    home.into_iter()
        .chain(real)
        .any(|home| home.starts_with(folder))
}
