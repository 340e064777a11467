//! Files and folders of the configuration, lowest precedence first.

use std::path::{Path, PathBuf};

use super::options::LoadOptions;
use crate::paths;

/// Files of the global folder; later ones win.
pub(crate) const GLOBAL_FILES: [&str; 3] = ["config.json", "opencode.json", "opencode.jsonc"];

/// Files of a project folder or of a config folder; later ones win.
pub(crate) const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// Returns whether a boolean environment variable is on, as OpenCode reads it.
pub(crate) fn switch(options: &LoadOptions, name: &str) -> bool {
    let on = |value: &String| {
        ["1", "true", "yes", "on", "y"].contains(&value.to_ascii_lowercase().as_str())
    };
    options.env.get(name).is_some_and(on)
}

/// Returns a variable that names a file or folder. Empty is unset.
pub(crate) fn path_variable(options: &LoadOptions, name: &str) -> Option<PathBuf> {
    let value = options.env.get(name).filter(|value| !value.is_empty())?;
    Some(paths::expand(value, &options.directory, &options.home))
}

/// Returns OpenCode's global folder.
pub(crate) fn global_dir(options: &LoadOptions) -> PathBuf {
    options.xdg_config.join("opencode")
}

/// Returns folders whose `opencode.json(c)` are the project's: the worktree's root first, the working directory last.
pub(crate) fn project_dirs(options: &LoadOptions) -> Vec<PathBuf> {
    if switch(options, "OPENCODE_DISABLE_PROJECT_CONFIG") {
        return Vec::new();
    }
    let mut dirs = paths::upwards(&options.directory, &options.worktree);
    dirs.reverse();
    dirs
}

/// Returns the config folders in OpenCode's order: the global one, each `.opencode` from the working directory *up*
/// to the worktree's root, `~/.opencode`, `OPENCODE_CONFIG_DIR`; without duplicates.
pub(crate) fn config_dirs(options: &LoadOptions) -> Vec<PathBuf> {
    let mut out = vec![global_dir(options)];
    let mut found: Vec<PathBuf> = Vec::new();
    if !switch(options, "OPENCODE_DISABLE_PROJECT_CONFIG") {
        found.extend(
            paths::upwards(&options.directory, &options.worktree)
                .iter()
                .map(|dir| dir.join(".opencode")),
        );
    }
    found.push(options.home.join(".opencode"));
    found.retain(|dir| dir.is_dir());
    found.extend(path_variable(options, "OPENCODE_CONFIG_DIR"));
    for dir in found {
        if !out.contains(&dir) {
            out.push(dir);
        }
    }
    out
}

/// Returns whether a folder with configuration is the project's: on the way up from the working directory, and not
/// the user's home.
pub(crate) fn is_project_folder(options: &LoadOptions, folder: Option<&Path>) -> bool {
    let Some(folder) = folder else { return false };
    let own = folder.ancestors().find(|it| it.ends_with(".opencode"));
    let base = own.map_or(Some(folder), Path::parent);
    let named = path_variable(options, "OPENCODE_CONFIG_DIR");
    base.is_some_and(|base| {
        let up = paths::upwards(&options.directory, &options.worktree);
        up.iter().any(|it| it == base) && base != options.home && named.as_deref() != Some(folder)
    })
}
