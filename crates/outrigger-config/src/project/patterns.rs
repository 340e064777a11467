//! Files that match shell patterns.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::command_words::{has_wildcard, matches};

/// Maximum number of folders for `**`.
const MAX_FOLDERS: usize = 500;
/// Maximum number of files that one pattern matches.
const MAX_MATCHES: usize = 100;

/// Returns the files that match a pattern.
pub(super) fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = all_matching(pattern);
    found.retain(|it| it.is_file());
    found
}

/// Returns the folders that match a pattern.
pub(super) fn matching_folders(pattern: &Path) -> Vec<PathBuf> {
    let mut found = all_matching(pattern);
    found.retain(|it| it.is_dir());
    found
}

fn all_matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern {
        let name = part.to_string_lossy();
        found = match has_wildcard(&name) {
            _ if name == "**" => found
                .iter()
                .flat_map(|it| below(it))
                .take(MAX_FOLDERS)
                .collect(),
            false => found.iter().map(|it| it.join(part)).collect(),
            true => found
                .iter()
                .filter_map(|it| fs::read_dir(it).ok())
                .flatten()
                .flatten()
                .filter(|it| matches(&name, &it.file_name().to_string_lossy()))
                .map(|it| it.path())
                .take(MAX_MATCHES)
                .collect(),
        };
    }
    found
}

/// Returns a folder and all below it.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(folder) = found.get(at).filter(|_| found.len() < MAX_FOLDERS) {
        at += 1;
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders: Vec<PathBuf> = entries
            .filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
            .map(|it| it.path())
            .collect();
        found.extend(folders);
    }
    found
}
