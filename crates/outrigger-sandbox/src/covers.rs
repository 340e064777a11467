//! Finding the files and folders that a process is not to see, or not to change: a bounded walk over a project.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// What is to become of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// Nothing; a folder is looked into.
    None,
    /// It can be read, with all below, and not changed. A folder is looked into for what is to be hidden.
    ReadOnly,
    /// It looks empty.
    Hidden,
}

/// What a walk found, for [`crate::Policy::hide`] and [`crate::Policy::read_only`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covers {
    /// To be hidden.
    pub hide: Vec<PathBuf>,
    /// To be kept from changes.
    pub read_only: Vec<PathBuf>,
}

/// Most files and folders that a walk looks at.
pub const MOST_ENTRIES: usize = 300_000;
/// Most paths that can be covered: each is a mount that is made at every start.
pub const MOST_COVERS: usize = 2_000;

/// Walks everything below `root` and asks `decide` about each path, given relative to `root` and whether it is a folder.
/// Links are not followed, but one whose own name is decided about stands for what it leads to. Folders that cannot be
/// read hold nothing that a process of this user could read.
///
/// # Errors
/// [`SandboxError::TooMany`] when there is more than can be looked at, or more than can be covered. The caller must not
/// start the process then.
pub fn find(
    root: &Path,
    mut decide: impl FnMut(&str, bool) -> Cover,
) -> Result<Covers, SandboxError> {
    let mut covers = Covers::default();
    let mut seen = 0_usize;
    // Each folder with whether it lies in one that is read-only already.
    let mut folders = vec![(root.to_path_buf(), false)];
    while let Some((folder, frozen)) = folders.pop() {
        for entry in entries(&folder) {
            seen += 1;
            if seen > MOST_ENTRIES {
                return Err(SandboxError::TooMany {
                    root: root.to_path_buf(),
                    what: "files and folders",
                    most: MOST_ENTRIES,
                });
            }
            let (path, kind) = entry;
            let Ok(relative) = path.strip_prefix(root) else {
                continue;
            };
            // A name that is not text matches what its readable part matches.
            let cover = decide(&relative.to_string_lossy(), kind.is_dir());
            match cover {
                Cover::Hidden => covers.hide.push(path),
                Cover::ReadOnly if kind.is_dir() => {
                    if !frozen {
                        covers.read_only.push(path.clone());
                    }
                    folders.push((path, true));
                }
                Cover::ReadOnly if !frozen => covers.read_only.push(path),
                Cover::None if kind.is_dir() => folders.push((path, frozen)),
                Cover::ReadOnly | Cover::None => {}
            }
            if covers.hide.len() + covers.read_only.len() > MOST_COVERS {
                return Err(SandboxError::TooMany {
                    root: root.to_path_buf(),
                    what: "paths that a rule denies",
                    most: MOST_COVERS,
                });
            }
        }
    }
    covers.hide.sort();
    covers.read_only.sort();
    Ok(covers)
}

fn entries(folder: &Path) -> impl Iterator<Item = (PathBuf, fs::FileType)> {
    let listed: io::Result<fs::ReadDir> = fs::read_dir(folder);
    listed
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["a/b", "keys/deep", "made/inner", "links"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            ".env",
            "a/b/.env",
            "keys/deep/id",
            "made/out.js",
            "made/inner/.env",
            "made/inner/x",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink("../a", root.join("links/again")).unwrap();
        symlink("../a/b", root.join("links/.env")).unwrap();
        let mut asked = 0;
        let found = find(root, |path, is_dir| {
            asked += 1;
            match path {
                "keys" if is_dir => Cover::Hidden,
                "made" => Cover::ReadOnly,
                path if path.starts_with("made/") && !path.ends_with(".env") => Cover::ReadOnly,
                path if path.ends_with(".env") => Cover::Hidden,
                _ => Cover::None,
            }
        })
        .unwrap();
        let shown = |paths: &[PathBuf]| -> Vec<String> {
            let relative = paths.iter().map(|path| path.strip_prefix(root).unwrap());
            relative.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            shown(&found.hide),
            [".env", "a/b/.env", "links/.env", "made/inner/.env"]
                .into_iter()
                .chain(["keys"])
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(shown(&found.read_only), ["made"]);
        // Neither what is hidden as a whole nor what a link leads to was looked into.
        assert_eq!(asked, 13);
    }

    #[test]
    fn more_than_can_be_covered_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=MOST_COVERS {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let error = find(dir.path(), |_, _| Cover::Hidden).unwrap_err();
        assert_eq!(error.code(), "spawn.too_many");
        assert!(find(dir.path(), |_, _| Cover::None).is_ok());
    }
}
