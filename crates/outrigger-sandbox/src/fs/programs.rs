//! The programs that a process may run ([`crate::Policy::execute`]), and where programs are.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Folders with programs.
const PROGRAMS: [&str; 8] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/games",
    "/usr/local/games",
];
/// Folders that belong to the system with everything in them: programs in [`PROGRAMS`] are often links into these.
const SYSTEM: [&str; 7] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
];
/// Known folders of the dynamic loaders.
const LOADERS: [&str; 6] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux.so.2",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
    "/lib/ld-linux-riscv64-lp64d.so.1",
];

/// Returns the files of the programs whose name `fits`, in the folders of `search` (a `PATH` value) and in the usual ones:
/// the targets of links and every other name that a file has there.
#[must_use]
pub fn named(search: &OsStr, fits: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folders: BTreeSet<PathBuf> = std::env::split_paths(search)
        .filter(|folder| folder.is_absolute())
        .chain(PROGRAMS.iter().map(PathBuf::from))
        .filter_map(|it| fs::canonicalize(it).ok())
        .collect();
    let entries = || {
        folders
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flatten()
            .flatten()
    };
    let number = |path: &Path| {
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(((meta.dev(), meta.ino()), meta.nlink()))
    };
    let mut found = BTreeSet::new();
    let mut linked = BTreeSet::new();
    for entry in entries().filter(|entry| fits(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        let (Some((file, names)), Ok(real)) = (number(&path), fs::canonicalize(&path)) else {
            continue;
        };
        found.insert(real);
        if names > 1 {
            linked.insert(file);
        }
    }
    if !linked.is_empty() {
        let paths = entries().map(|entry| entry.path());
        let same =
            paths.filter(|path| number(path).is_some_and(|(file, _)| linked.contains(&file)));
        found.extend(same.filter_map(|path| fs::canonicalize(path).ok()));
    }
    found.into_iter().collect()
}

/// Returns whether a program belongs to the system: with links resolved, it lies in one of the system's folders.
#[must_use]
pub fn is_of_system(real: &Path) -> bool {
    let mut folders = SYSTEM.iter().filter_map(|it| fs::canonicalize(it).ok());
    folders.any(|folder| real.starts_with(folder))
}

/// Returns what may be executed: the list, the targets of its links, and the loaders.
pub(crate) fn run(execute: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let Some(listed) = execute else {
        return Vec::new();
    };
    let loaders = LOADERS.iter().map(PathBuf::from);
    listed
        .iter()
        .cloned()
        .chain(loaders)
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

/// Returns what may be read: if programs are listed, without the program folders, because a loader runs whatever it may read.
pub(crate) fn readable(read: &[PathBuf], execute: Option<&[PathBuf]>) -> Vec<PathBuf> {
    if execute.is_none() {
        return read.to_vec();
    }
    let programs: Vec<PathBuf> = PROGRAMS
        .iter()
        .filter_map(|folder| fs::canonicalize(folder).ok())
        .collect();
    let mut readable = Vec::new();
    for path in read {
        split(path, &programs, &mut readable);
    }
    readable
}

/// Splits a path into its children if program folders lie below it, and drops those.
fn split(path: &Path, programs: &[PathBuf], out: &mut Vec<PathBuf>) {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if programs.iter().any(|folder| real.starts_with(folder)) {
        return;
    }
    if !programs.iter().any(|folder| folder.starts_with(&real)) {
        out.push(path.to_owned());
        return;
    }
    // `/usr` and `/usr/local`: the depth is bounded.
    let children = fs::read_dir(&real).into_iter().flatten().flatten();
    for child in children {
        split(&child.path(), programs, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_under_all_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let bin = root.join("bin");
        fs::create_dir_all(root.join("bin/folder-x")).unwrap();
        for name in ["bin/fetch-x", "real-x", "bin/other"] {
            fs::write(root.join(name), "").unwrap();
        }
        fs::hard_link(bin.join("fetch-x"), bin.join("alias")).unwrap();
        std::os::unix::fs::symlink("../real-x", bin.join("led-x")).unwrap();
        assert_eq!(
            named(bin.as_os_str(), |name| name.ends_with("-x")),
            ["bin/alias", "bin/fetch-x", "real-x"].map(|it| root.join(it))
        );
    }

    #[test]
    fn programs_of_the_system_lie_in_its_folders() {
        for (path, is) in [
            ("/usr/bin/git", true),
            ("/usr/lib/git-core/git", true),
            ("/usr/local/bin/node", true),
            ("/home/me/bin/git", false),
            ("/opt/acme/bin/git", false),
            ("/tmp/git", false),
            ("/usrx/bin/git", false),
        ] {
            assert_eq!(is_of_system(Path::new(path)), is, "{path}");
        }
    }

    #[test]
    fn folders_of_programs_are_left_out_and_the_rest_stays() {
        let read = ["/usr", "/bin", "/etc", "/usr/lib"].map(PathBuf::from);
        assert_eq!(readable(&read, None), read);
        let left = readable(&read, Some(&[]));
        let has = |path: &str| left.iter().any(|it| Path::new(path).starts_with(it));
        assert!(
            has("/etc/hosts") && has("/usr/lib/x") && has("/usr/share/x"),
            "{left:?}"
        );
        for folder in ["/usr/bin/x", "/usr/local/bin/x", "/bin/x", "/usr"] {
            assert!(!has(folder), "{folder}: {left:?}");
        }
        assert!(run(None).is_empty());
    }
}
