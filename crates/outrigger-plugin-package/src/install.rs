//! Installs plugins from npm, once, into `<cache>/plugins/<name>@<exact version>/`. A package from a URL, a file or under another
//! name has a separate folder for each request: its own metadata states its version.
//!
//! Installed packages are used as they are: a request that the lock file knows needs no network (`@latest` is not refreshed
//! automatically). One bad dependency fails only its own plugin. Two hosts may install at once: each plugin has a lock, and a
//! folder appears whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Spawner;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::error::PackageError;
use crate::installer::Installer;
use crate::lock::{LockFile, Locked, hold};

/// The plugin cache with its installer.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    installer: Option<Installer>,
    spawner: Spawner,
}

/// A package in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Folder of the package itself, `…/node_modules/<name>`.
    pub dir: PathBuf,
    /// Exact version.
    pub version: String,
}

/// Returns the folder of installed plugins in the cache folder.
#[must_use]
pub fn cache_root(cache: &Path) -> PathBuf {
    cache.join("plugins")
}

impl Cache {
    /// Creates a cache at `<cache>/plugins`. Without an installer it returns only what is installed.
    #[must_use]
    pub fn new(cache: &Path, installer: Option<Installer>, spawner: Spawner) -> Self {
        Self {
            root: cache_root(cache),
            installer,
            spawner,
        }
    }

    /// Returns the folder that contains the installed plugins and the lock file.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What is installed for a request, without the network and without waiting for anyone.
    ///
    /// # Errors
    /// `plugin.cache` when the lock file cannot be read.
    pub fn find(
        &self,
        name: &str,
        request: &str,
    ) -> Result<Option<InstalledPackage>, PackageError> {
        // A request that is not an exact version names no folder: `latest` and `^1` find nothing here.
        if let Some(found) = self.at(name, request, request) {
            return Ok(Some(found));
        }
        let lock = LockFile::read(&self.root)?;
        Ok(lock
            .find(name, request)
            .and_then(|locked| self.at(name, request, &locked.version)))
    }

    /// The package for a request, installed now if it is not there. `installing` is called before that begins, and from
    /// then on with the number of bytes that have come.
    ///
    /// # Errors
    /// `plugin.no_installer`, `plugin.install`, `plugin.not_installed`, `plugin.cache`.
    pub async fn get(
        &self,
        spec: &str,
        name: &str,
        request: &str,
        mut installing: impl FnMut(Option<u64>) + Send,
    ) -> Result<InstalledPackage, PackageError> {
        if let Some(found) = self.find(name, request)? {
            return Ok(found);
        }
        let Some(installer) = &self.installer else {
            return Err(PackageError::NoInstaller {
                spec: spec.to_owned(),
            });
        };
        installing(None);
        let _held = hold(&self.root, &format!("package {name}")).await?;
        // Another host may have installed it while this one waited.
        if let Some(found) = self.find(name, request)? {
            return Ok(found);
        }
        let staging = Staging::new(&self.root, name)?;
        let wanted = format!("{name}@{request}");
        installer
            .add(&self.spawner, staging.path(), spec, &wanted, &mut |bytes| {
                installing(Some(bytes));
            })
            .await?;
        let version =
            version_of(&staging.path().join("node_modules").join(name)).ok_or_else(|| {
                PackageError::NotInstalled {
                    spec: spec.to_owned(),
                    installer: installer.name().to_owned(),
                    path: staging.path().join("node_modules").join(name),
                }
            })?;
        let integrity = integrity(staging.path(), name);
        let place = self.place(name, request, &version);
        if self.at(name, request, &version).is_none() {
            staging.into_place(&place)?;
        }
        let entry = Locked {
            name: name.to_owned(),
            requested: request.to_owned(),
            version,
            integrity,
        };
        LockFile::record(&self.root, entry.clone()).await?;
        self.at(name, request, &entry.version)
            .ok_or_else(|| PackageError::NotInstalled {
                spec: spec.to_owned(),
                installer: installer.name().to_owned(),
                path: place,
            })
    }

    // `~` is in no version, so no version request finds a package from a URL.
    fn place(&self, name: &str, request: &str, version: &str) -> PathBuf {
        let mut folder = format!("{name}@{version}");
        if !is_of_registry(request) {
            let digest = outrigger_stdx::text::hex(&Sha256::digest(request.as_bytes()));
            folder.push('~');
            folder.push_str(digest.get(..16).unwrap_or(&digest));
        }
        self.root.join(folder)
    }

    // A version with a slash must not escape the folder.
    fn at(&self, name: &str, request: &str, version: &str) -> Option<InstalledPackage> {
        if !crate::semver::is_version(version) || version.contains(['/', '\\']) {
            return None;
        }
        let place = self.place(name, request, version);
        let dir = place.join("node_modules").join(name);
        let version = version_of(&dir)?;
        Some(InstalledPackage { dir, version })
    }
}

/// Returns whether a request asks the registry for a version of the package of that name: not a URL, a file, or another package.
fn is_of_registry(request: &str) -> bool {
    let lower = request.to_ascii_lowercase();
    let is_file = [".tgz", ".tar.gz", ".tar"]
        .iter()
        .any(|ending| lower.ends_with(ending));
    !is_file && !request.contains([':', '/', '\\'])
}

fn version_of(package: &Path) -> Option<String> {
    let manifest: Value = serde_json::from_slice(
        &outrigger_files::read(&package.join("package.json"), outrigger_files::SETTINGS).ok()?,
    )
    .ok()?;
    let version = manifest.get("version")?.as_str()?;
    // It becomes part of a folder's name.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    (!version.is_empty() && version.chars().all(plain) && !version.starts_with('.'))
        .then(|| version.to_owned())
}

/// A folder next to the final one, removed again unless it is moved into place.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    moved: bool,
}

impl Staging {
    /// Creates an empty folder with an empty `package.json`. Leftovers of a dead host with the same process id are removed.
    pub(crate) fn new(root: &Path, name: &str) -> Result<Self, PackageError> {
        let path = root.join(".staging").join(format!(
            "{}.{}",
            name.replace('/', "+"),
            std::process::id()
        ));
        let failed = |error: std::io::Error| PackageError::Cache {
            path: path.clone(),
            message: error.to_string(),
        };
        if path.exists() {
            outrigger_files::remove_tree(&path).map_err(failed)?;
        }
        fs::create_dir_all(&path).map_err(failed)?;
        fs::write(path.join("package.json"), "{\n  \"private\": true\n}\n").map_err(failed)?;
        Ok(Self { path, moved: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the folder to its final path, replacing a broken one.
    pub(crate) fn into_place(mut self, place: &Path) -> Result<(), PackageError> {
        let failed = |error: std::io::Error| PackageError::Cache {
            path: place.to_owned(),
            message: error.to_string(),
        };
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        if place.exists() {
            outrigger_files::remove_tree(place).map_err(failed)?;
        }
        fs::rename(&self.path, place).map_err(failed)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.moved {
            // The next installation removes what cannot be removed now.
            let _ = outrigger_files::remove_tree(&self.path);
        }
    }
}

// npm stores it in package-lock.json, Bun in bun.lock, which is JSON with trailing commas and one line for each package.
fn integrity(dir: &Path, name: &str) -> Option<String> {
    if let Ok(bytes) = outrigger_files::read(&dir.join("package-lock.json"), outrigger_files::DATA)
    {
        let lock: Value = serde_json::from_slice(&bytes).ok()?;
        let entry = lock.get("packages")?.get(format!("node_modules/{name}"))?;
        return entry.get("integrity")?.as_str().map(str::to_owned);
    }
    let lock =
        outrigger_files::read_to_string(&dir.join("bun.lock"), outrigger_files::DATA).ok()?;
    let start = format!("\"{name}\": [");
    let line = lock
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&start))?;
    let sum = line
        .split('"')
        .rfind(|word| word.starts_with("sha512-") || word.starts_with("sha1-"))?;
    Some(sum.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrity_from_either_lock() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(integrity(dir.path(), "demo"), None);
        fs::write(
            dir.path().join("bun.lock"),
            "{\n \"packages\": {\n  \"demo\": [\"demo@1.0.0\", \"\", { \"bin\": {} }, \"sha512-AAA==\"],\n\n  \"demo2\": [\"x\", {}, \"sha512-B\"],\n }\n}\n",
        )
        .unwrap();
        assert_eq!(
            integrity(dir.path(), "demo").as_deref(),
            Some("sha512-AAA==")
        );
        fs::write(
            dir.path().join("package-lock.json"),
            r#"{"packages":{"node_modules/demo":{"version":"1.0.0","integrity":"sha512-CCC"}}}"#,
        )
        .unwrap();
        assert_eq!(integrity(dir.path(), "demo").as_deref(), Some("sha512-CCC"));
    }

    #[test]
    fn a_version_that_would_leave_the_cache_is_no_version() {
        let dir = tempfile::tempdir().unwrap();
        for (version, ok) in [
            ("1.2.3", true),
            ("1.0.0-beta.1+x", true),
            ("../../x", false),
            ("..", false),
            ("", false),
        ] {
            fs::write(
                dir.path().join("package.json"),
                format!(r#"{{"version":"{version}"}}"#),
            )
            .unwrap();
            assert_eq!(version_of(dir.path()).is_some(), ok, "{version}");
        }
    }
}
