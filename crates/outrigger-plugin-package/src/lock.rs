//! Records of the plugin cache: `outrigger-plugins.lock`, and the locks that keep two hosts from installing the same plugin
//! at once.
//!
//! The lock file stores the version for each request, so that a bare name means the same plugin tomorrow and no start needs
//! the network. It contains no download URLs: the registry comes from the user's npm configuration.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_files::Readers;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::PackageError;

/// Name of the lock file in the plugin cache.
pub const LOCK_FILE: &str = "outrigger-plugins.lock";

/// Interval between attempts to take a lock that another host holds.
const RETRY: Duration = Duration::from_millis(50);

/// Contents of the lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    /// Version of the format.
    #[serde(default)]
    pub version: u32,
    /// One entry for each name and request, sorted by both.
    #[serde(default)]
    pub plugins: Vec<Locked>,
}

/// A request with the package that it was resolved to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// Package, as installed.
    pub name: String,
    /// Version, range, tag or other npm request.
    pub requested: String,
    /// Exact version.
    pub version: String,
    /// Checksum of the package, if the installer reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
}

impl LockFile {
    /// Reads the lock file of a cache; one that is not there is empty.
    ///
    /// # Errors
    /// `plugin.cache` when it cannot be read or is not JSON of ours.
    pub fn read(cache: &Path) -> Result<Self, PackageError> {
        let path = cache.join(LOCK_FILE);
        let read = read_json(&path).map_err(|error| broken(&path, error))?;
        Ok(read.unwrap_or_default())
    }

    /// Returns the entry of a request.
    #[must_use]
    pub fn find(&self, name: &str, requested: &str) -> Option<&Locked> {
        self.plugins
            .iter()
            .find(|locked| locked.name == name && locked.requested == requested)
    }

    /// Writes an entry down, in place of an earlier one of the same name and request. Other hosts' entries are kept.
    ///
    /// # Errors
    /// `plugin.cache` when the file cannot be read or written.
    pub async fn record(cache: &Path, entry: Locked) -> Result<(), PackageError> {
        let _held = hold(cache, "lock-file").await?;
        let mut file = Self::read(cache)?;
        file.version = 1;
        file.plugins
            .retain(|locked| (&locked.name, &locked.requested) != (&entry.name, &entry.requested));
        file.plugins.push(entry);
        file.plugins
            .sort_by(|a, b| (&a.name, &a.requested).cmp(&(&b.name, &b.requested)));
        file.write(cache)
    }

    /// Forgets an entry, so that its request is answered anew; the answer is what it was. What names an exact version stays.
    ///
    /// # Errors
    /// `plugin.cache` when the file cannot be read or written.
    pub async fn forget(
        cache: &Path,
        name: &str,
        requested: &str,
    ) -> Result<Option<Locked>, PackageError> {
        let _held = hold(cache, "lock-file").await?;
        let mut file = Self::read(cache)?;
        let is_it = |locked: &Locked| locked.name == name && locked.requested == requested;
        let at = file.plugins.iter().position(is_it);
        let Some(at) = at.filter(|_| !crate::semver::is_version(requested)) else {
            return Ok(None);
        };
        let forgotten = file.plugins.remove(at);
        file.write(cache)?;
        Ok(Some(forgotten))
    }

    // Written to a separate file and renamed, so that a reader never sees a partial file.
    fn write(&self, cache: &Path) -> Result<(), PackageError> {
        let path = cache.join(LOCK_FILE);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| broken(&path, error))?;
        text.push(b'\n');
        let written = outrigger_files::replace(&path, &text, Readers::AsBefore);
        written.map_err(|error| broken(&path, error))
    }
}

/// A lock between hosts (`flock`). Released when it is dropped, or when the process that holds it exits.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Waits for the lock `name` of a cache folder. The lock files stay: removing one would let two hosts hold it.
///
/// # Errors
/// `plugin.cache` when the folder or the lock cannot be made.
pub async fn hold(cache: &Path, name: &str) -> Result<Held, PackageError> {
    let path = cache.join(".locks").join(file_name(name));
    let folder = path
        .parent()
        .map_or_else(|| cache.to_owned(), Path::to_path_buf);
    fs::create_dir_all(&folder).map_err(|error| broken(&folder, error))?;
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| broken(&path, error))?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Held(file)),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(RETRY).await,
            Err(TryLockError::Error(error)) => return Err(broken(&path, error)),
        }
    }
}

// The slash of a scope must not create a folder.
fn file_name(name: &str) -> PathBuf {
    PathBuf::from(name.replace('/', "+"))
}

/// Reads a JSON file; `None` if it does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match outrigger_files::read(path, outrigger_files::DATA) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the error for a file of the cache that cannot be used.
pub(crate) fn broken(path: &Path, error: impl std::fmt::Display) -> PackageError {
    PackageError::Cache {
        path: path.to_owned(),
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;

    fn locked(name: &str, requested: &str, version: &str) -> Locked {
        Locked {
            name: name.into(),
            requested: requested.into(),
            version: version.into(),
            integrity: None,
        }
    }

    #[tokio::test]
    async fn what_is_forgotten_is_asked_for_anew_and_an_exact_version_is_not() {
        let dir = tempfile::tempdir().unwrap();
        for requested in ["latest", "1.0.0"] {
            LockFile::record(dir.path(), locked("a", requested, "1.0.0"))
                .await
                .unwrap();
        }
        let forgotten = LockFile::forget(dir.path(), "a", "latest").await.unwrap();
        assert_eq!(forgotten, Some(locked("a", "latest", "1.0.0")));
        for requested in ["latest", "1.0.0"] {
            let forgotten = LockFile::forget(dir.path(), "a", requested).await.unwrap();
            assert_eq!(forgotten, None);
        }
        let left = LockFile::read(dir.path()).unwrap();
        assert!(left.find("a", "1.0.0").is_some());
    }

    #[tokio::test]
    async fn entries_are_replaced_sorted_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LockFile::read(dir.path()).unwrap(), LockFile::default());
        for entry in [
            locked("b", "latest", "1.0.0"),
            locked("a", "^2", "2.1.0"),
            locked("b", "latest", "1.1.0"),
        ] {
            LockFile::record(dir.path(), entry).await.unwrap();
        }
        let text = fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap();
        insta::assert_snapshot!(text, @r#"
        {
          "version": 1,
          "plugins": [
            {
              "name": "a",
              "requested": "^2",
              "version": "2.1.0"
            },
            {
              "name": "b",
              "requested": "latest",
              "version": "1.1.0"
            }
          ]
        }
        "#);
        let file = LockFile::read(dir.path()).unwrap();
        assert_eq!(
            file.find("b", "latest").map(|l| l.version.as_str()),
            Some("1.1.0")
        );
        assert_eq!(file.find("b", "^1"), None);
    }

    #[tokio::test]
    async fn concurrent_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for i in 0..20 {
            let cache = dir.path().to_owned();
            tasks.spawn(async move {
                LockFile::record(&cache, locked(&format!("p{i}"), "latest", "1.0.0")).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
        assert_eq!(LockFile::read(dir.path()).unwrap().plugins.len(), 20);
    }

    #[tokio::test]
    async fn a_broken_file_is_an_error_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(LOCK_FILE), "{").unwrap();
        let error = LockFile::record(dir.path(), locked("a", "1", "1.0.0"))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "plugin.cache");
        assert_eq!(fs::read_to_string(dir.path().join(LOCK_FILE)).unwrap(), "{");
    }
}
