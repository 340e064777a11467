//! Where this program looks for what it starts itself (Bun, Node, npm, git) and for programs named in the user's own settings: never
//! in folders that sandboxed processes can write to. An activated `.venv`, or `node_modules/.bin` added by direnv, comes first on the
//! `PATH`, and a command of the model could put a `bun` or a `git` there.
//!
//! There is one list for the whole process: a command that may write to one project must not influence what is started for another.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::which::which;

static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Skips programs in these folders from now on, because sandboxed processes write to them. Reads the disk.
pub fn pass_over(folders: impl IntoIterator<Item = PathBuf>) {
    let named: Vec<PathBuf> = folders.into_iter().collect();
    let real = named.iter().filter_map(|it| it.canonicalize().ok());
    let all: Vec<PathBuf> = real.chain(named.iter().cloned()).collect();
    // The root of the file system is not a project.
    let all = all.into_iter().filter(|it| it.parent().is_some());
    WRITTEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(all);
}

/// Returns whether a program or folder lies where sandboxed processes write, by its name or through its links. Reads the disk.
#[must_use]
pub fn is_passed_over(path: &Path) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    // For a path that does not exist yet, check the nearest existing folder.
    let there = path.ancestors().find(|it| it.exists());
    let real = there.and_then(|it| it.canonicalize().ok());
    let mut names = [Some(path.to_path_buf()), real].into_iter().flatten();
    names.any(|name| written.iter().any(|folder| name.starts_with(folder)))
}

/// Returns a `PATH` without the skipped folders and without entries that depend on the working directory. Reads the disk.
#[must_use]
pub fn without(path: &OsStr) -> OsString {
    let folders = std::env::split_paths(path);
    let kept = folders.filter(|it| it.is_absolute() && !is_passed_over(it));
    std::env::join_paths(kept).unwrap_or_default()
}

/// Returns a `PATH` with the skipped folders moved to the end, so that programs that exist only there are still found. Reads the disk.
#[must_use]
pub fn last(path: &OsStr) -> OsString {
    let folders = std::env::split_paths(path).filter(|it| it.is_absolute());
    let (written, kept): (Vec<PathBuf>, _) = folders.partition(|it| is_passed_over(it));
    std::env::join_paths(kept.iter().chain(&written)).unwrap_or_default()
}

/// Finds a program for the host itself on its own `PATH`. Reads the disk.
#[must_use]
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    which_of_host(program, std::env::var_os("PATH").unwrap_or_default())
}

/// Like [`find`], on another `PATH`. Also skips a link whose target sandboxed processes can write to. Reads the disk.
#[must_use]
pub fn which_of_host(program: impl AsRef<OsStr>, path: impl AsRef<OsStr>) -> Option<PathBuf> {
    if program.as_ref().as_encoded_bytes().contains(&b'/') {
        return which(program, without(path.as_ref()));
    }
    // Only folders that contain the program are checked.
    let folders = std::env::split_paths(&path).filter(|it| it.is_absolute());
    let found = folders.filter_map(|folder| Some((which(program.as_ref(), &folder)?, folder)));
    let mut kept = found.filter(|(file, folder)| !is_passed_over(folder) && !is_passed_over(file));
    kept.next().map(|(file, _)| file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn programs_that_sandboxed_processes_may_write_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for file in [
            "project/.venv/bin/tool",
            "usr/tool",
            "usr/other",
            "project/only/one",
        ] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "#!/bin/sh\n").unwrap();
            fs::set_permissions(at(file), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(at("links")).unwrap();
        symlink(at("project/.venv/bin"), at("venv")).unwrap();
        symlink(at("project/only/one"), at("links/one")).unwrap();
        symlink(at("project"), at("way")).unwrap();
        let named = [
            "project/.venv/bin",
            "venv",
            "way/not/yet",
            "links",
            "project/only",
            "usr",
        ];
        let all = named.map(at);
        let path = std::env::join_paths([&[PathBuf::from("."), PathBuf::new()], &all[..]].concat())
            .unwrap();
        assert_eq!(
            which_of_host("tool", &path),
            Some(at("project/.venv/bin/tool"))
        );

        pass_over([at("way"), PathBuf::from("/")]);
        for (program, found) in [
            ("tool", Some(at("usr/tool"))),
            ("other", Some(at("usr/other"))),
            ("one", None),
        ] {
            assert_eq!(which_of_host(program, &path), found, "{program}");
        }
        let shown = |path: OsString| std::env::split_paths(&path).collect::<Vec<_>>();
        assert_eq!(shown(without(&path)), ["links", "usr"].map(at));
        let order = [
            "links",
            "usr",
            "project/.venv/bin",
            "venv",
            "way/not/yet",
            "project/only",
        ];
        assert_eq!(shown(last(&path)), order.map(at));
        assert!(!is_passed_over(Path::new("/usr/bin")));
    }
}
