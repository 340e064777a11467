//! `npm install` of a folder of `tests/`, pinned by its lock file.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sh::{self, command, work};
use crate::{Result, failed};

/// How often an install that has a limit is looked at.
const POLL: Duration = Duration::from_millis(200);

/// Installs `tests/NAME` in `.work/NAME`, unless that lock file was installed there before.
pub(super) fn install(name: &str) -> Result<PathBuf> {
    Install::begin(name)?.finish(None)
}

/// npm at work on a folder.
pub(super) struct Install {
    name: String,
    target: PathBuf,
    lock: String,
    /// None where the folder was installed before.
    npm: Option<Child>,
}

impl Install {
    /// Starts npm.
    ///
    /// Not `npm ci`: that refuses a lock file made where the registry lacked optional packages of other systems. What was
    /// installed is held against the lock file instead.
    pub(super) fn begin(name: &str) -> Result<Self> {
        let (source, target) = (sh::root().join("tests").join(name), work(name));
        let lock = sh::read(&source.join("package-lock.json"))?;
        let mut install = Self {
            name: name.to_owned(),
            target,
            lock,
            npm: None,
        };
        if fs::read_to_string(install.stamp()).is_ok_and(|installed| installed == install.lock) {
            return Ok(install);
        }
        println!("setup: npm install of tests/{name} in .work/{name}");
        let target = &install.target;
        fs::create_dir_all(target)
            .or_else(|error| failed(format!("{}: {error}", target.display())))?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            let copied = fs::copy(source.join(file), target.join(file));
            copied.or_else(|error| failed(format!("{}: {error}", source.join(file).display())))?;
        }
        let mut npm = command("npm");
        npm.current_dir(target).stdout(Stdio::null()).args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ]);
        match npm.spawn() {
            Ok(npm) => install.npm = Some(npm),
            Err(error) => return failed(format!("npm cannot be started: {error}")),
        }
        Ok(install)
    }

    /// Where it is installed. What takes longer than `limit` from now is given up.
    pub(super) fn finish(mut self, limit: Option<Duration>) -> Result<PathBuf> {
        let target = self.target.clone();
        let Some(status) = self.wait(limit)? else {
            return Ok(target);
        };
        let name = &self.name;
        if !status.success() {
            return failed(format!("npm install of tests/{name}: {status}"));
        }
        let installed = sh::read(&target.join("node_modules/.package-lock.json"))?;
        let strange = not_in_lock(&self.lock, &installed)?;
        if !strange.is_empty() {
            return failed(format!(
                "npm installed what tests/{name}/package-lock.json does not have: {}",
                strange.join(", ")
            ));
        }
        let stamp = self.stamp();
        fs::write(&stamp, &self.lock)
            .or_else(|error| failed(format!("{}: {error}", stamp.display())))?;
        Ok(target)
    }

    /// How npm ended; none where there was nothing to do.
    fn wait(&mut self, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
        let Some(npm) = &mut self.npm else {
            return Ok(None);
        };
        let begun = Instant::now();
        let ended = loop {
            match limit {
                None => break npm.wait().map(Some),
                Some(limit) => match npm.try_wait() {
                    Ok(None) if begun.elapsed() < limit => sleep(POLL),
                    ended => break ended,
                },
            }
        };
        match ended {
            Ok(Some(status)) => {
                self.npm = None;
                Ok(Some(status))
            }
            Ok(None) => failed(format!("npm install of tests/{} does not end", self.name)),
            Err(error) => failed(format!("npm: {error}")),
        }
    }

    fn stamp(&self) -> PathBuf {
        self.target.join(".installed")
    }
}

impl Drop for Install {
    /// Nobody needs it any more, or it was given up.
    fn drop(&mut self) {
        if let Some(npm) = &mut self.npm {
            let _ = npm.kill();
            let _ = npm.wait();
        }
    }
}

/// The installed packages that the lock file does not name with the same checksum.
fn not_in_lock(lock: &str, installed: &str) -> Result<Vec<String>> {
    let parse = |text: &str| {
        serde_json::from_str::<Value>(text)
            .or_else(|error| failed(format!("package-lock.json: {error}")))
    };
    let (lock, installed) = (parse(lock)?, parse(installed)?);
    let packages = installed["packages"].as_object().into_iter().flatten();
    let strange = packages.filter(|(path, package)| {
        let checksum = &package["integrity"];
        checksum.is_null() || lock["packages"][path.as_str()]["integrity"] != *checksum
    });
    Ok(strange.map(|(path, _)| path.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_outside_the_lock_file_are_found() {
        let lock = r#"{"packages": {"": {}, "node_modules/a": {"integrity": "1"}, "node_modules/b": {"integrity": "2"}}}"#;
        for (installed, strange) in [
            (r#"{"packages": {"node_modules/a": {"integrity": "1"}}}"#, 0),
            (r#"{"packages": {"node_modules/a": {"integrity": "9"}}}"#, 1),
            (
                r#"{"packages": {"node_modules/a": {}, "node_modules/c": {"integrity": "3"}}}"#,
                2,
            ),
        ] {
            assert_eq!(
                not_in_lock(lock, installed).unwrap().len(),
                strange,
                "{installed}"
            );
        }
    }
}
