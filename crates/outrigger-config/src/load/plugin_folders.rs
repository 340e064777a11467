//! Searches for `outrigger.plugin.toml` below a root (D1): bounded, and without cycles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_protocol::manifest::MANIFEST_FILE;

/// Maximum depth below a root.
const DEEP: usize = 8;
/// Maximum number of folder entries read below one root.
const ENTRIES: usize = 20_000;
/// Maximum number of plugins from one root.
const MAX_PLUGINS: usize = 256;

/// Plugins that were found below a root.
#[derive(Debug, Default)]
pub struct PluginFolders {
    /// Folders with a manifest, sorted.
    pub folders: Vec<PathBuf>,
    /// Why the search was incomplete.
    pub problem: Option<String>,
}

/// Returns the folders with a manifest below a root, including the root. Everything in one of them belongs to that plugin;
/// `node_modules` and hidden folders are skipped. A folder that points outside the root is checked but not entered, so that a
/// plugin behind it is refused by name instead of being invisible.
#[must_use]
pub fn plugin_folders(root: &Path) -> PluginFolders {
    below_within(root, ENTRIES)
}

fn below_within(root: &Path, most: usize) -> PluginFolders {
    let mut found = PluginFolders::default();
    let Ok(real) = root.canonicalize() else {
        return found;
    };
    let mut seen = BTreeSet::new();
    let mut entries = 0;
    let mut todo = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = todo.pop() {
        let Ok(place) = folder.canonicalize() else {
            continue;
        };
        if !seen.insert(place.clone()) {
            continue;
        }
        if folder.join(MANIFEST_FILE).symlink_metadata().is_ok() {
            found.folders.push(folder);
            if found.folders.len() >= MAX_PLUGINS {
                found.problem = Some(format!(
                    "{}: more than {MAX_PLUGINS} plugins; the rest is not looked at",
                    root.display()
                ));
                break;
            }
            continue;
        }
        // After the limit, known folders are still checked for a manifest.
        if !place.starts_with(&real) || entries >= most {
            continue;
        }
        let Ok(list) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in list.flatten() {
            if entries >= most {
                found.problem = Some(format!(
                    "{}: more than {most} entries; the rest is not looked at",
                    root.display()
                ));
                break;
            }
            entries += 1;
            let name = entry.file_name();
            let hidden = name.as_encoded_bytes().starts_with(b".");
            if hidden || name == "node_modules" || !entry.path().is_dir() {
                continue;
            }
            if depth >= DEEP {
                found.problem = Some(format!(
                    "{}: folders more than {DEEP} deep are not looked at",
                    root.display()
                ));
                continue;
            }
            todo.push((entry.path(), depth + 1));
        }
    }
    found.folders.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_everywhere_once_and_ends() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = dir.path();
        let put = |path: &Path| {
            std::fs::create_dir_all(path).unwrap();
            std::fs::write(path.join(MANIFEST_FILE), "").unwrap();
        };
        for name in [
            "a",
            "b/c/d",
            "b/c/d/inner",
            "node_modules/n",
            ".git/g",
            "1/2/3/4/5/6/7/8/9",
        ] {
            put(&root.join(name));
        }
        put(&outside.path().join("deep/x"));
        put(&outside.path().join("own"));
        std::os::unix::fs::symlink(root, root.join("b/circle")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("own"), root.join("link")).unwrap();
        let found = plugin_folders(root);
        let names: Vec<String> = found
            .folders
            .iter()
            .map(|path| path.strip_prefix(root).unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["a", "b/c/d", "link"]);
        assert!(found.problem.unwrap().contains("more than 8 deep"));
        assert!(plugin_folders(&root.join("nowhere")).folders.is_empty());
        // One large folder has the same limit as any other, and the entries seen so far are used.
        let large = tempfile::tempdir().unwrap();
        for n in 0..60 {
            put(&large.path().join(format!("p{n}")));
        }
        let found = below_within(large.path(), 50);
        assert_eq!(found.folders.len(), 50);
        assert!(found.problem.unwrap().contains("more than 50 entries"));
    }
}
