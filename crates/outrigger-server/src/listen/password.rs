//! The generated password if the user gives none: random, kept in a file that only the user can read. Other server secrets are kept in the
//! same way.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Returns the path of the password file.
#[must_use]
pub fn password_file(data: &Path) -> PathBuf {
    data.join("server-password")
}

/// Returns the kept password, unless others could have read it.
///
/// # Errors
/// The file exists and cannot be read.
pub fn kept_password(data: &Path) -> io::Result<Option<String>> {
    kept(&password_file(data))
}

fn kept(path: &Path) -> io::Result<Option<String>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !meta.is_file() || meta.permissions().mode() & 0o077 != 0 {
        return Ok(None);
    }
    let text = outrigger_files::read_to_string(path, outrigger_files::SETTINGS)?;
    Ok(Some(text.trim().to_owned()).filter(|text| text.len() >= 16))
}

/// Returns the kept password, or a new one if there is none or it may be known to others.
///
/// # Errors
/// The folder is not writable, or the system has no randomness.
pub fn keep_password(data: &Path) -> io::Result<String> {
    keep_secret(&password_file(data))
}

/// Returns a random text that is kept in its own file, like the password.
pub(crate) fn keep_secret(path: &Path) -> io::Result<String> {
    if let Some(secret) = kept(path)? {
        return Ok(secret);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let secret = URL_SAFE_NO_PAD.encode(outrigger_stdx::random::bytes::<24>()?);
    // Written to a temporary file and renamed: two servers that start at once end up with one secret.
    let fresh = path.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    let placed = match fs::hard_link(&fresh, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match kept(path)? {
            Some(secret) => {
                fs::remove_file(&fresh)?;
                return Ok(secret);
            }
            None => fs::rename(&fresh, path),
        },
        linked => linked.and_then(|()| fs::remove_file(&fresh)),
    };
    placed?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_again_when_others_could_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        assert_eq!(kept_password(&data).unwrap(), None);
        let first = keep_password(&data).unwrap();
        assert!(first.len() >= 32, "{first}");
        let path = password_file(&data);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(keep_password(&data).unwrap(), first);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let second = keep_password(&data).unwrap();
        assert_ne!(second, first);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::write(&path, "short").unwrap();
        assert_ne!(keep_password(&data).unwrap(), "short");
        // Links are not followed.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(keep_password(&data).unwrap().len() >= 32);
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
    }
}
