//! Code of plugins that no process in a box changes (issue 18).
//!
//! A plugin is hashed, and then its process reads it. Where it lies in the project, whoever may write to the project could put
//! other code in its place in between, which would run before the second look finds it. So from the moment at which a plugin
//! is trusted its code is read-only for every process in a box that this program starts, plugins and commands alike, and the
//! folders above it stay where they are. Others may write there as well (an editor, `git pull`), so the plugin's process
//! compares each source with its hash when it reads it, and runs what it compared (`outrigger-js/host/checked.mjs`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::resolve::ResolvedPlugin;
use crate::trust::Content;
use crate::trust::tree::SOURCES;

/// Files of one plugin that are kept one by one. Of a larger one its folder is kept.
const MOST_FILES: usize = 500;
/// Further code than what is searched for imports.
const COMPILED: [&str; 2] = ["node", "wasm"];

/// By project: an agent of another folder has other plugins.
static KEPT: Mutex<BTreeMap<PathBuf, BTreeSet<PathBuf>>> = Mutex::new(BTreeMap::new());

/// Code that is kept from changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCode {
    /// Files, and folders with all below.
    pub read_only: Vec<PathBuf>,
    /// Folders above them, or others could be put in their place.
    pub held: Vec<PathBuf>,
}

/// Keeps the code of a plugin that is trusted. A package from npm lies where no process in a box can write.
pub(crate) fn keep(project: &Path, plugin: &ResolvedPlugin, content: &Content) {
    if !plugin.from_path {
        return;
    }
    let code = code(project, plugin, content);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.entry(project.to_owned()).or_default().extend(code);
}

/// What is kept of a project's plugins, of what is there now.
#[must_use]
pub fn kept_code(project: &Path) -> KeptCode {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = KeptCode::default();
    for path in kept.get(project).into_iter().flatten() {
        if path.exists() {
            found.read_only.push(path.clone());
            let above = path.ancestors().skip(1);
            let below = above.take_while(|it| it.starts_with(project) && *it != project);
            found.held.extend(below.map(Path::to_path_buf));
        }
    }
    found.held.sort();
    found.held.dedup();
    found
}

/// The sources of a plugin by path with their SHA-256, for its process to compare before it runs them.
pub(crate) fn sources(plugin: &ResolvedPlugin, content: &Content) -> BTreeMap<String, String> {
    if !plugin.from_path {
        return BTreeMap::new();
    }
    let hashed = |(name, path): (&String, &PathBuf)| {
        let file = content.files.get(name).filter(|it| it.kind == "file")?;
        let real = path.canonicalize().ok().filter(|it| has(it, &SOURCES))?;
        Some((real.to_str()?.to_owned(), file.hash.clone()))
    };
    let sources = content.places.iter().filter_map(hashed);
    sources.take(MOST_FILES).collect()
}

fn has(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|it| extensions.contains(&it))
}

fn code(project: &Path, plugin: &ResolvedPlugin, content: &Content) -> Vec<PathBuf> {
    let is_code = |path: &&PathBuf| has(path, &SOURCES) || has(path, &COMPILED);
    let files = content.places.values().filter(is_code);
    let files: Vec<PathBuf> = files.filter_map(|it| it.canonicalize().ok()).collect();
    let whole = plugin.dir.canonicalize().ok();
    match whole.filter(|folder| files.len() > MOST_FILES && !project.starts_with(folder)) {
        Some(folder) => vec![folder],
        None => files.into_iter().take(MOST_FILES).collect(),
    }
}
