//! Which programs a process may run ([`crate::Policy::execute`]).

use std::fs;
use std::path::{Path, PathBuf};

/// Where programs lie.
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
/// Where the loaders of dynamic programs are known to lie.
const LOADERS: [&str; 6] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux.so.2",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
    "/lib/ld-linux-riscv64-lp64d.so.1",
];

/// What may be executed: the list, what its links lead to, and the loaders.
pub(crate) fn run(execute: Option<&[PathBuf]>) -> Vec<PathBuf> {
    let Some(listed) = execute else {
        return Vec::new();
    };
    let loaders = LOADERS.iter().map(PathBuf::from);
    let all = listed.iter().cloned().chain(loaders);
    all.filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// What may be read: without the folders of programs where programs are listed. A loader runs whatever it may read.
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

/// A path without the folders of programs below it: its other children, where there are some.
fn split(path: &Path, programs: &[PathBuf], out: &mut Vec<PathBuf>) {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if programs.iter().any(|folder| real.starts_with(folder)) {
        return;
    }
    if !programs.iter().any(|folder| folder.starts_with(&real)) {
        out.push(path.to_owned());
        return;
    }
    // `/usr` and `/usr/local`: bounded by their depth.
    let children = fs::read_dir(&real).into_iter().flatten().flatten();
    for child in children {
        split(&child.path(), programs, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
