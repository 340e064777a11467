//! The host's own npm packages: `@opencode-ai/sdk`, `@opencode-ai/plugin` and zod, for plugins without their own copy and
//! for the `client` that every plugin gets.
//!
//! They are npm dependencies, never committed: installed once into the data folder, pinned by the embedded lock file of
//! this crate (`setup/package-lock.json`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_sandbox::Spawner;
use sha2::{Digest as _, Sha256};

use crate::error::PackageError;
use crate::install::Staging;
use crate::installer::Installer;
use crate::lock::{broken, hold};
use crate::resolve::ResolvedPlugin;

const MANIFEST: &str = include_str!("../setup/package.json");
const LOCK: &str = include_str!("../setup/package-lock.json");

/// Name of the packages in errors and progress reports.
pub const SPEC: &str = "@opencode-ai/sdk, @opencode-ai/plugin and zod";

/// The installed packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modules {
    /// Folder whose `node_modules` contains them.
    pub root: PathBuf,
    /// Entry file of `@opencode-ai/sdk`.
    pub sdk: PathBuf,
}

/// Returns the folder of the packages: one per version of the lock, so that an update removes nothing from a running host.
fn place(data: &Path) -> PathBuf {
    let digest = Sha256::digest(LOCK.as_bytes());
    let name = outrigger_stdx::text::hex(digest.get(..6).unwrap_or_default());
    data.join("modules").join(name)
}

/// Returns the packages if they are installed. Only reads the disk.
#[must_use]
pub fn modules(data: &Path) -> Option<Modules> {
    let root = place(data);
    let sdk = root.join("node_modules/@opencode-ai/sdk/dist/index.js");
    let whole = sdk.is_file()
        && ["@opencode-ai/plugin", "zod"].iter().all(|name| {
            root.join("node_modules")
                .join(name)
                .join("package.json")
                .is_file()
        });
    whole.then_some(Modules { root, sdk })
}

/// Time for which a failed installation is not retried at a start: without a network every run would wait for it.
/// `outrigger plugin setup` always retries.
const PAUSE: Duration = Duration::from_secs(600);

fn failure(data: &Path) -> PathBuf {
    data.join("modules/.failed")
}

/// Returns whether an installation failed within [`PAUSE`].
#[must_use]
pub fn failed_lately(data: &Path) -> bool {
    let at = fs::metadata(failure(data)).and_then(|meta| meta.modified());
    // If the clock was set back, the time is in the future: retry.
    at.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < PAUSE))
}

/// Records that an installation just failed.
pub fn note_failure(data: &Path) {
    // If nothing can be written, the next start tries again.
    let _ = fs::write(failure(data), "");
}

/// Installs the packages unless they are there.
///
/// # Errors
/// `plugin.no_installer`, `plugin.install`, `plugin.cache`; `plugin.not_installed` when the installer installed something
/// else.
pub async fn setup(
    data: &Path,
    installer: Option<&Installer>,
    spawner: &Spawner,
) -> Result<Modules, PackageError> {
    if let Some(found) = modules(data) {
        return Ok(found);
    }
    let installer = installer.ok_or_else(|| PackageError::NoInstaller {
        spec: SPEC.to_owned(),
    })?;
    let root = data.join("modules");
    let _held = hold(&root, "setup").await?;
    if let Some(found) = modules(data) {
        return Ok(found);
    }
    let staging = Staging::new(&root, "setup")?;
    for (name, text) in [("package.json", MANIFEST), ("package-lock.json", LOCK)] {
        let path = staging.path().join(name);
        fs::write(&path, text).map_err(|error| broken(&path, error))?;
    }
    installer
        .install(spawner, staging.path(), SPEC, &mut |_| {})
        .await?;
    let place = place(data);
    staging.into_place(&place)?;
    modules(data).ok_or_else(|| PackageError::NotInstalled {
        spec: SPEC.to_owned(),
        installer: installer.name().to_owned(),
        path: place,
    })
}

/// Maximum size in bytes of a source that is searched.
const MAX_SOURCE: u64 = 4 * 1024 * 1024;

/// Returns whether a plugin may need the SDK or the packages with it. A single file of the user that mentions none of them
/// does not need it, so that its first start needs no network; anything larger is assumed to need it.
#[must_use]
pub fn is_used_by(plugin: &ResolvedPlugin) -> bool {
    let small = plugin
        .file
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SOURCE);
    if !plugin.from_path || !small {
        return true;
    }
    let Ok(source) = outrigger_files::read_to_string(&plugin.file, MAX_SOURCE) else {
        return true;
    };
    let speaks_of = ["client", "zod", "fetch", "serverUrl"];
    speaks_of.iter().any(|word| source.contains(word))
        || imports(&source).any(|name| !is_builtin(name))
}

/// Returns the modules that a source names, as far as that is visible without parsing it.
pub fn imports(source: &str) -> impl Iterator<Item = &str> {
    let starts = ["from", "import", "import(", "require("];
    starts.into_iter().flat_map(move |start| {
        source.match_indices(start).filter_map(move |(at, _)| {
            let rest = source.get(at + start.len()..)?.trim_start();
            let quote = rest
                .chars()
                .next()
                .filter(|c| matches!(c, '"' | '\'' | '`'))?;
            rest.get(1..)?.split(quote).next()
        })
    })
}

/// Returns whether a module comes with the runtime.
fn is_builtin(name: &str) -> bool {
    const NAMES: [&str; 26] = [
        "assert",
        "async_hooks",
        "buffer",
        "bun",
        "child_process",
        "crypto",
        "dns",
        "events",
        "fs",
        "http",
        "https",
        "module",
        "net",
        "os",
        "path",
        "perf_hooks",
        "process",
        "querystring",
        "readline",
        "stream",
        "string_decoder",
        "timers",
        "tls",
        "url",
        "util",
        "zlib",
    ];
    name.starts_with("node:")
        || name.starts_with("bun:")
        || NAMES.contains(&name.split('/').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::OPENCODE_VERSION;
    use outrigger_protocol::diagnose::Diagnose;
    use serde_json::Value;

    #[test]
    fn the_lock_pins_the_compatible_version_and_names_no_address() {
        let lock: Value = serde_json::from_str(LOCK).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        for name in ["@opencode-ai/sdk", "@opencode-ai/plugin"] {
            assert_eq!(
                packages[&format!("node_modules/{name}")]["version"],
                OPENCODE_VERSION,
                "{name}"
            );
        }
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["integrity"].is_string(), "{name}");
            assert_eq!(package.get("resolved"), None, "{name}");
        }
        let manifest: Value = serde_json::from_str(MANIFEST).unwrap();
        assert_eq!(manifest["dependencies"], packages[""]["dependencies"]);
    }

    #[tokio::test]
    async fn nothing_there_and_nothing_to_install_with() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(modules(dir.path()), None);
        let error = setup(dir.path(), None, &Spawner::new().unwrap())
            .await
            .unwrap_err();
        assert_eq!(error.code(), "plugin.no_installer");
        assert!(!failed_lately(dir.path()));
        fs::create_dir_all(dir.path().join("modules")).unwrap();
        note_failure(dir.path());
        assert!(failed_lately(dir.path()));
    }

    #[test]
    fn a_file_of_its_own_that_speaks_of_no_client_needs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for (source, from_path, want) in [
            (
                "export const A = async () => ({ event: async () => {} })",
                true,
                false,
            ),
            ("export const A = async ({ client }) => ({})", true, true),
            ("import { tool } from '@opencode-ai/plugin'", true, true),
            ("import { help } from './help.js'", true, true),
            ("export { A } from \"acme-plug\"", true, true),
            ("const a = require('/abs/a.js')", true, true),
            (
                "import fs from 'node:fs'\nimport path from \"path\"\nimport 'fs/promises'\nexport const A = async () => ({})",
                true,
                false,
            ),
            ("export const A = async () => ({})", false, true),
        ] {
            let file = dir.path().join("plugin.js");
            fs::write(&file, source).unwrap();
            let plugin = ResolvedPlugin {
                id: "p".into(),
                spec: "p".into(),
                entry: String::new(),
                entries: vec![file.clone()],
                file,
                version: None,
                dir: dir.path().into(),
                from_path,
                options: None,
                tools: None,
                manifest: None,
            };
            assert_eq!(is_used_by(&plugin), want, "{source}");
        }
    }
}
