//! The temporary folder of this user's sessions: one for all of them, so that a process sees only its own folder in it.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of names tried: another user may own one.
const MAX_NAMES: u32 = 16;

/// Returns the folder, which only this user can access, and creates it if it is missing.
///
/// # Errors
/// The system's error.
pub fn folder() -> io::Result<PathBuf> {
    in_folder(&std::env::temp_dir())
}

fn in_folder(base: &Path) -> io::Result<PathBuf> {
    for path in names(base) {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if is_ours(&path) => {
                fs::set_permissions(&path, Permissions::from_mode(0o700))?;
                return Ok(path);
            }
            _ => {}
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns the existing folders: other sessions may use another temporary folder, or had to choose another name.
#[must_use]
pub fn all() -> Vec<PathBuf> {
    let mut bases = vec![std::env::temp_dir(), PathBuf::from("/tmp")];
    bases.dedup();
    bases
        .iter()
        .flat_map(|base| names(base))
        .filter(|path| is_ours(path))
        .collect()
}

fn names(base: &Path) -> impl Iterator<Item = PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    (0..MAX_NAMES).map(move |number| match number {
        0 => base.join(format!("outrigger-{user}")),
        _ => base.join(format!("outrigger-{user}.{number}")),
    })
}

fn is_ours(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_somebody_else_made_is_not_taken() {
        let base = tempfile::tempdir().unwrap();
        let all: Vec<PathBuf> = names(base.path()).collect();
        std::os::unix::fs::symlink("/", &all[0]).unwrap();
        fs::write(&all[1], "").unwrap();
        fs::create_dir(&all[2]).unwrap();
        fs::set_permissions(&all[2], Permissions::from_mode(0o777)).unwrap();
        assert_eq!(in_folder(base.path()).unwrap(), all[2]);
        let mode = fs::metadata(&all[2]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::remove_file(&all[1]).unwrap();
        assert_eq!(in_folder(base.path()).unwrap(), all[1]);
    }
}
