//! Finds a program on a search path.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the absolute path of `program` in the folders of `path` (a `PATH` value), or `None`.
///
/// A name with a slash is not searched; it is returned if it is an executable file. Relative and empty entries of
/// `path` are skipped, so that a program is never taken from the project's folder by accident.
pub fn which(program: impl AsRef<OsStr>, path: impl AsRef<OsStr>) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    if program.as_os_str().is_empty() {
        return None;
    }
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let absolute = std::path::absolute(program).ok()?;
        return is_executable(&absolute).then_some(absolute);
    }
    std::env::split_paths(path.as_ref())
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// Returns whether `file` is a regular file with any execute permission. Whether *we* may execute it is left to
/// `exec`.
pub(crate) fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_executable_files_in_absolute_folders() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for folder in [&first, &second] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
        }
        fs::create_dir(first.join("folder")).unwrap();
        fs::set_permissions(second.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new(""), Path::new("."), &first, &second]).unwrap();

        let absolute = second.join("tool");
        let cases: [(&OsStr, Option<&Path>); 6] = [
            ("tool".as_ref(), Some(&absolute)),
            ("folder".as_ref(), None),
            ("absent".as_ref(), None),
            ("".as_ref(), None),
            (absolute.as_os_str(), Some(&absolute)),
            ("Cargo.toml".as_ref(), None),
        ];
        for (program, expected) in cases {
            assert_eq!(which(program, &path).as_deref(), expected, "{program:?}");
        }
    }
}
