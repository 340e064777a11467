//! Plugin code that no sandboxed process can change.
//!
//! A plugin is hashed, and then its process reads it. If it is in the project, anyone who may write to the project could replace
//! the code in between, and it would run before the second check detects it. So once a plugin is trusted, its code is read-only
//! for every sandboxed process that this program starts, plugins and commands alike, and the folders above it cannot be moved.
//! Other programs may write there as well (an editor, `git pull`), so the plugin's process compares each source with its hash
//! when reading it, runs what it compared, and nothing that was not checked (`outrigger-js/host/integrity.mjs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_plugin_package::ResolvedPlugin;
use outrigger_protocol::rpc::Sources;
use outrigger_stdx::sync::lock;

use crate::Content;
use crate::tree::{SOURCES, has_extension, installation};

/// Maximum number of files of one plugin that are protected individually. For a larger one the folder is protected.
const MAX_FILES: usize = 500;
/// Maximum number of sources that a plugin's process compares. In a larger plugin most are from packages.
const MAX_SOURCES: usize = 20_000;
/// Extensions of code besides those searched for imports.
const COMPILED: [&str; 2] = ["node", "wasm"];

/// By project: an agent of another folder has other plugins.
static KEPT: Mutex<BTreeMap<PathBuf, BTreeSet<PathBuf>>> = Mutex::new(BTreeMap::new());

/// Code that is protected from changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCode {
    /// Files, and folders with their content.
    pub read_only: Vec<PathBuf>,
    /// Folders above them, which could otherwise be replaced.
    pub held: Vec<PathBuf>,
}

/// Protects the code of a trusted plugin. A package from npm is where no sandboxed process can write.
pub(crate) fn keep(project: &Path, plugin: &ResolvedPlugin, content: &Content) {
    if !plugin.from_path {
        return;
    }
    let code = code(project, plugin, content);
    let mut kept = lock(&KEPT);
    kept.entry(project.to_owned()).or_default().extend(code);
}

/// Protects project files that trusted settings execute: the scripts of command hooks, programs of servers.
pub fn keep_programs(project: &Path, files: Vec<PathBuf>) {
    let mut kept = lock(&KEPT);
    kept.entry(project.to_owned()).or_default().extend(files);
}

/// Returns the protected, existing code of a project's plugins.
#[must_use]
pub fn kept_code(project: &Path) -> KeptCode {
    let kept = lock(&KEPT);
    let mut found = KeptCode::default();
    for path in kept.get(project).into_iter().flatten() {
        if path.exists() {
            found.read_only.push(path.clone());
            // The name of a link must not be replaced.
            found
                .held
                .extend(Some(path.clone()).filter(|it| it.is_symlink()));
            let above = path.ancestors().skip(1);
            let below = above.take_while(|it| it.starts_with(project) && *it != project);
            found.held.extend(below.map(Path::to_path_buf));
        }
    }
    found.held.sort();
    found.held.dedup();
    found
}

/// Returns the code of a plugin by path, with that of the packages that it imports, for its process to compare before running it.
/// If there is very much, packages are left to the second check. A package from npm is where no sandboxed process can write.
#[must_use]
pub fn sources(plugin: &ResolvedPlugin, content: &Content) -> Sources {
    let mut sources = Sources::default();
    if !plugin.from_path {
        let folder = plugin
            .dir
            .canonicalize()
            .unwrap_or_else(|_| plugin.dir.clone());
        let root = installation(&folder).unwrap_or(&folder);
        sources.free.extend(root.to_str().map(str::to_owned));
        return sources;
    }
    let unresolved = content.unresolved.iter().filter_map(|it| it.to_str());
    sources.unresolved.extend(unresolved.map(str::to_owned));
    let has_packages = content.sources.len() <= MAX_SOURCES;
    for (path, source) in &content.sources {
        let Some(name) = path.to_str() else { continue };
        if source.own || has_packages {
            sources.hashes.insert(name.to_owned(), source.hash.clone());
        }
        match has_packages {
            _ if source.own => {}
            true => sources.packages.extend(package(name)),
            false => sources.free.extend(package(name)),
        }
    }
    sources
}

/// Returns the folder of the package that contains a file.
fn package(path: &str) -> Option<String> {
    const MODULES: &str = "/node_modules/";
    let start = path.rfind(MODULES)? + MODULES.len();
    let rest = path.get(start..)?;
    let parts = if rest.starts_with('@') { 2 } else { 1 };
    let (end, _) = rest.match_indices('/').nth(parts - 1)?;
    path.get(..start + end).map(str::to_owned)
}

fn code(project: &Path, plugin: &ResolvedPlugin, content: &Content) -> Vec<PathBuf> {
    let is_code = |path: &&PathBuf| has_extension(path, &SOURCES) || has_extension(path, &COMPILED);
    let files: Vec<PathBuf> = content
        .places
        .values()
        .filter(is_code)
        .filter_map(|it| it.canonicalize().ok())
        .collect();
    let whole = plugin.dir.canonicalize().ok();
    match whole.filter(|folder| files.len() > MAX_FILES && !project.starts_with(folder)) {
        Some(folder) => vec![folder],
        None => files.into_iter().take(MAX_FILES).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_package_is_the_innermost() {
        for (path, want) in [
            (
                "/p/node_modules/zod/v4/index.js",
                Some("/p/node_modules/zod"),
            ),
            (
                "/p/node_modules/@a/b/index.js",
                Some("/p/node_modules/@a/b"),
            ),
            (
                "/p/node_modules/.pnpm/z@4/node_modules/z/x/y.js",
                Some("/p/node_modules/.pnpm/z@4/node_modules/z"),
            ),
            ("/p/node_modules/single.js", None),
            ("/p/packages/shared/index.ts", None),
        ] {
            assert_eq!(package(path).as_deref(), want, "{path}");
        }
    }
}
