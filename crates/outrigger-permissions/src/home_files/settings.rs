//! Folders of the user's own settings: beside texts for models they have settings with keys in them, files that `{file:}` takes a key
//! from, what plugins keep there, and copies of all that.

use std::path::{Path, PathBuf};

use outrigger_workspace::Folders;

use super::places;
use crate::agents::TEXT_FOLDERS;

/// The folders, as entries of the [lists](super::lists).
const FOLDERS: [&str; 2] = [".config/opencode", ".opencode"];
/// Endings of texts and code.
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
/// How deep files are looked for, and how many are looked at.
const DEPTH: usize = 3;
const MAX_FILES: usize = 500;

/// Folders of the user's own settings, unless it is them that are worked in.
#[must_use]
pub fn settings_folders(folders: &Folders, directory: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|entry| places(folders, entry))
        .filter(|it| !directory.starts_with(it))
        .collect();
    // Rules hold for where a link leads as well.
    let real: Vec<PathBuf> = all.iter().flat_map(|it| it.canonicalize()).collect();
    all.extend(real.into_iter().filter(|it| !directory.starts_with(it)));
    all.sort();
    all.dedup();
    all
}

/// The files in them that may have keys. Reads the disk.
pub(super) fn with_keys(folders: &Folders) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = MAX_FILES;
    for folder in FOLDERS.iter().flat_map(|entry| places(folders, entry)) {
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
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            if depth > 1 && !is_text_folder {
                search(&path, depth - 1, left, found);
            }
        } else if !is_open(&path, &name) {
            found.push(path);
        }
    }
}

fn is_open(path: &Path, name: &str) -> bool {
    let ending = path.extension().map(|it| it.to_string_lossy());
    OPEN_FILES.contains(&name) || ending.is_some_and(|it| OPEN.contains(&it.as_ref()))
}
