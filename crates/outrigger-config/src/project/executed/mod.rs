//! Project files that a command line executes: its programs, the scripts passed to interpreters, and the files in which programs
//! find what they run.
//!
//! The user's trust by content ([`named_files`](super::named_files)) includes them, and is wider: it covers every file that a word
//! may name, once, at the start. Only the files here are compared with their hash before each run, and protected from commands
//! while the agent works: a line that checks `src/*.ts` names files that the model is meant to change.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::LoadOptions;
use crate::project::TrustRequest;
use crate::project::command_words::Texts;
use crate::project::named_files::{IS_RUN, is_plugin, runs};
use crate::project::{named_files, recipes};

/// Folders of build results and installed packages, which are regenerated during work.
const BUILT: [&str; 8] = [
    "node_modules",
    "dist",
    "build",
    "target",
    "out",
    "vendor",
    ".venv",
    "venv",
];

/// Files by real path, with digests of their content, of `scripts` of a `package.json`, or of where a link leads out of the
/// project.
pub(crate) type Executed = BTreeMap<PathBuf, String>;

/// Returns what `value`, from a file of `folder`, executes of the project. Reads the disk.
pub(crate) fn executed_by(value: &Value, folder: &Path, options: &LoadOptions) -> Executed {
    search_of(value, folder, options).found
}

/// Returns why not all that `value` executes can be found, and thus held against changes. Reads the disk.
pub(crate) fn unheld_by(value: &Value, folder: &Path, options: &LoadOptions) -> Option<String> {
    search_of(value, folder, options).unheld
}

fn search_of<'a>(value: &Value, folder: &Path, options: &'a LoadOptions) -> search::Search<'a> {
    let mut search = search::Search::new(folder, options);
    for line in Texts::of(value).lines {
        search.line(&line, search::MAX_DEPTH);
    }
    search
}

/// Returns the files that requests need trust for: all that they may name, and what is compared before each run. Reads the disk.
pub(crate) fn trusted_for(
    asks: &[TrustRequest],
    options: &LoadOptions,
    without_plugins: bool,
) -> Vec<TrustRequest> {
    let mut all = named_files::of(asks, options, without_plugins);
    for ask in asks
        .iter()
        .filter(|it| runs(&it.what) && !is_plugin(&it.what))
    {
        let file = Path::new(&ask.file);
        let folder = if file.is_dir() { file } else { folder_of(file) };
        for (path, hash) in executed_by(&ask.value, folder, options) {
            let file = path.display().to_string();
            if all.iter().any(|it| it.file == file) {
                continue;
            }
            let short = hash.get(..12).unwrap_or_default();
            all.push(TrustRequest {
                file,
                what: IS_RUN.to_owned(),
                shown: format!("SHA-256 {short}, run by {} {}", ask.file, ask.what),
                hash,
                value: Value::Null,
            });
        }
    }
    all
}

/// Returns project files that the requests execute, except those built, installed or written during work. Reads the disk.
pub(crate) fn kept(asks: &[TrustRequest], options: &LoadOptions) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for ask in asks
        .iter()
        .filter(|it| runs(&it.what) && !is_plugin(&it.what))
    {
        let folder = folder_of(Path::new(&ask.file));
        all.extend(executed_by(&ask.value, folder, options).into_keys());
    }
    all.retain(|it| is_kept(it, options.project_folder()));
    all
}

/// Returns the base folder of paths in a settings file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().unwrap_or(file);
    match (folder.file_name(), folder.parent()) {
        // `CLAUDE_PROJECT_DIR`.
        (Some(name), Some(above)) if name == ".claude" => above,
        _ => folder,
    }
}

/// Returns whether an executed file is protected during work.
pub(crate) fn is_kept(file: &Path, project: &Path) -> bool {
    let real = project.canonicalize();
    let below = file
        .strip_prefix(real.as_deref().unwrap_or(project))
        .unwrap_or(file);
    let is_built = below.iter().any(|part| BUILT.iter().any(|it| part == *it));
    let is_recipe = recipes::is_build_file(file) || file.ends_with("package.json");
    !is_built && !is_recipe && !file.is_symlink() && file.is_file()
}

#[cfg(test)]
mod tests;
