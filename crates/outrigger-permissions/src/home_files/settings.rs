//! Folders of the user's own settings: besides texts for models they contain settings with keys, files that `{file:}` takes a key
//! from, data of plugins, and copies of all that.

use std::path::{Path, PathBuf};

use outrigger_sandbox::Listings;
use outrigger_workspace::Folders;

use super::places;

/// The folders, as entries of the [lists](super::lists).
const FOLDERS: [&str; 2] = [".config/opencode", ".opencode"];
/// Folders of the user's settings with texts for models: agents, commands, skills and code. Files next to them may contain keys.
const TEXT_FOLDERS: [&str; 13] = [
    "agent",
    "agents",
    "command",
    "commands",
    "mode",
    "modes",
    "node_modules",
    "plugin",
    "plugins",
    "skill",
    "skills",
    "tool",
    "tools",
];
/// Extensions of texts and code.
const OPEN: [&str; 11] = [
    "cjs", "cts", "js", "jsx", "lock", "lockb", "md", "mdc", "mjs", "mts", "ts",
];
/// Files without keys.
const OPEN_FILES: [&str; 4] = [
    ".gitignore",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
];
/// Maximum depth and number of files that are checked.
const DEPTH: usize = 3;
const MAX_FILES: usize = 500;

/// Returns the user's existing settings folders, except if the working directory is inside one. Reads the disk.
#[must_use]
pub fn settings_folders(folders: &Folders, directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|entry| places(folders, entry))
        .filter(|it| it.is_dir() && !directory.starts_with(it))
        .collect();
    // Rules apply to the target of a link as well.
    let real: Vec<PathBuf> = all.iter().flat_map(|it| it.canonicalize()).collect();
    all.extend(real.into_iter().filter(|it| !directory.starts_with(it)));
    all.sort();
    all.dedup();
    all
}

/// Returns the files in them that may have keys. Reads the disk.
pub(super) fn with_keys(folders: &Folders, listings: &mut Listings) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = MAX_FILES;
    let there = FOLDERS
        .iter()
        .flat_map(|entry| places(folders, entry))
        .filter(|it| listings.may_exist(it));
    for folder in there {
        search(&folder, DEPTH, &mut left, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn search(folder: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_text_folder = TEXT_FOLDERS.contains(&name.as_ref()) || name == ".git";
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && (depth == 1 || is_text_folder) => {}
            Ok(kind) if kind.is_dir() => search(&path, depth - 1, left, found),
            Ok(_) if !is_open(&path, &name) => found.push(path),
            _ => {}
        }
    }
}

fn is_open(path: &Path, name: &str) -> bool {
    let ending = path.extension().map(|it| it.to_string_lossy());
    OPEN_FILES.contains(&name) || ending.is_some_and(|it| OPEN.contains(&it.as_ref()))
}
