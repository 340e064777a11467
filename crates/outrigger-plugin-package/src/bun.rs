//! Bun from npm, for machines without one: the pinned platform package, installed where [`outrigger_js::JsRuntime::find`] looks.
//!
//! npm verifies the download against the checksum in the table below, which is part of this program, whatever registry the user's
//! npm configuration names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_plugin_status::Fetched;
use outrigger_sandbox::{Spawner, Spec, env, run};
use serde_json::json;

use crate::error::PackageError;
use crate::install::Staging;
use crate::installer::Installer;
use crate::lock::{broken, hold};
use crate::{BUN_SPEC, BUN_VERSION};

/// Approximate unpacked size of a package in bytes: that of `bun-linux-x64`; the others differ by a few percent. Used for the
/// progress bar only.
const UNPACKED: u64 = 107_403_658;

/// Time limit for the fetched program to report its version.
const ANSWER: Duration = Duration::from_secs(20);

/// A platform package of [`BUN_VERSION`].
#[derive(Debug, PartialEq, Eq)]
struct Package {
    os: &'static str,
    arch: &'static str,
    /// For x64 processors without AVX2.
    baseline: bool,
    musl: bool,
    /// Name without the scope.
    name: &'static str,
    integrity: &'static str,
}

/// `npm view @oven/bun-<platform>@1.4.5 dist.integrity`.
const PACKAGES: &[Package] = &[
    Package {
        os: "linux",
        arch: "x86_64",
        baseline: false,
        musl: false,
        name: "bun-linux-x64",
        integrity: "sha512-IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
    },
    Package {
        os: "linux",
        arch: "x86_64",
        baseline: true,
        musl: false,
        name: "bun-linux-x64-baseline",
        integrity: "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
    },
    Package {
        os: "linux",
        arch: "x86_64",
        baseline: false,
        musl: true,
        name: "bun-linux-x64-musl",
        integrity: "sha512-10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
    },
    Package {
        os: "linux",
        arch: "x86_64",
        baseline: true,
        musl: true,
        name: "bun-linux-x64-musl-baseline",
        integrity: "sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A==",
    },
    Package {
        os: "linux",
        arch: "aarch64",
        baseline: false,
        musl: false,
        name: "bun-linux-aarch64",
        integrity: "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
    },
    Package {
        os: "linux",
        arch: "aarch64",
        baseline: false,
        musl: true,
        name: "bun-linux-aarch64-musl",
        integrity: "sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
    },
];

impl Package {
    fn of(os: &str, arch: &str, avx2: bool, musl: bool) -> Option<&'static Self> {
        let baseline = arch == "x86_64" && !avx2;
        PACKAGES.iter().find(|package| {
            (package.os, package.arch) == (os, arch)
                && (package.baseline, package.musl) == (baseline, musl)
        })
    }

    /// Returns the package for this machine.
    fn here() -> Result<&'static Self, PackageError> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        Self::of(os, arch, avx2(), musl(Path::new("/"), arch)).ok_or_else(|| PackageError::Bun {
            message: format!("there is no package of it for {os} on {arch}"),
        })
    }

    // npm takes versions and checksums from a lock file, and URLs from its own configuration.
    fn manifests(&self) -> [(&'static str, String); 2] {
        let scoped = format!("@oven/{}", self.name);
        let dependencies = json!({ scoped.as_str(): BUN_VERSION });
        let manifest = json!({ "private": true, "dependencies": dependencies });
        let place = format!("node_modules/{scoped}");
        let lock = json!({
            "lockfileVersion": 3,
            "requires": true,
            "packages": {
                "": { "dependencies": dependencies },
                place.as_str(): { "version": BUN_VERSION, "integrity": self.integrity },
            },
        });
        [
            ("package.json", manifest.to_string()),
            ("package-lock.json", lock.to_string()),
        ]
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn avx2() -> bool {
    false
}

// This program may be static, so its own target is no indication. A machine with both loaders runs either.
fn musl(root: &Path, arch: &str) -> bool {
    let glibc = ["lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"];
    root.join(format!("lib/ld-musl-{arch}.so.1")).exists()
        && !glibc.iter().any(|loader| root.join(loader).exists())
}

/// Returns the path of a fetched Bun in the data folder.
#[must_use]
pub fn bun_path(data: &Path) -> PathBuf {
    data.join("bun/bin/bun")
}

/// Fetches Bun with npm unless it is there, and answers where it is; `growing` is called with how much has come. Two hosts may do this at once; the program appears
/// whole or not at all.
///
/// # Errors
/// `plugin.bun`: no npm, no package for this machine, npm failed (its last lines are in the message), or what came does
/// not run; `plugin.cache` when our data folder cannot be written.
pub async fn setup_bun(
    data: &Path,
    npm: Option<&Path>,
    spawner: &Spawner,
    growing: &mut (dyn FnMut(Fetched) + Send),
) -> Result<PathBuf, PackageError> {
    let place = bun_path(data);
    if place.is_file() {
        return Ok(place);
    }
    let npm = npm.ok_or_else(|| PackageError::Bun {
        message: "npm was not found".into(),
    })?;
    let package = Package::here()?;
    let root = data.join("bun");
    let _held = hold(&root, "bun").await?;
    // Another host may have installed it while this one waited.
    if place.is_file() {
        return Ok(place);
    }
    let staging = Staging::new(&root, "bun")?;
    for (name, text) in package.manifests() {
        let path = staging.path().join(name);
        fs::write(&path, text).map_err(|error| broken(&path, error))?;
    }
    Installer::Npm(npm.to_owned())
        .install(spawner, staging.path(), BUN_SPEC, &mut |bytes| {
            let total = Some(UNPACKED.max(bytes));
            growing(Fetched { bytes, total });
        })
        .await
        .map_err(not_fetched)?;
    let fetched = staging
        .path()
        .join("node_modules/@oven")
        .join(package.name)
        .join("bin/bun");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&fetched, mode).map_err(|error| PackageError::Bun {
        message: format!(
            "npm reported success, but {} is not usable: {error}",
            fetched.display()
        ),
    })?;
    check(&fetched, spawner).await?;
    let folder = root.join("bin");
    fs::create_dir_all(&folder).map_err(|error| broken(&folder, error))?;
    fs::rename(&fetched, &place).map_err(|error| broken(&place, error))?;
    Ok(place)
}

// A package for another C library or processor must not be left where every later start would find it.
async fn check(bun: &Path, spawner: &Spawner) -> Result<(), PackageError> {
    let spec = Spec::new(bun).arg("--version").vars(env::of_host(&[]));
    let failed = |reason: String| PackageError::Bun {
        message: format!("what npm installed does not run here: {reason}"),
    };
    let output = run(spawner, spec, ANSWER, 4096)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let said_version = output.stdout.first().is_some_and(u8::is_ascii_digit);
    if output.timed_out || !output.exit.success() || !said_version {
        return Err(failed(output.exit.to_string()));
    }
    Ok(())
}

fn not_fetched(error: PackageError) -> PackageError {
    let message = match error {
        PackageError::Install {
            installer, lines, ..
        } => format!(
            "{installer} failed: {}",
            lines.replace("npm error ", "").replace('\n', "; ")
        ),
        other => other.to_string(),
    };
    PackageError::Bun { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;

    #[test]
    fn the_package_of_a_machine() {
        let name = |os, arch, avx2, musl| Package::of(os, arch, avx2, musl).map(|p| p.name);
        for (machine, expected) in [
            (("linux", "x86_64", true, false), Some("bun-linux-x64")),
            (
                ("linux", "x86_64", false, false),
                Some("bun-linux-x64-baseline"),
            ),
            (("linux", "x86_64", true, true), Some("bun-linux-x64-musl")),
            (
                ("linux", "x86_64", false, true),
                Some("bun-linux-x64-musl-baseline"),
            ),
            (
                ("linux", "aarch64", false, false),
                Some("bun-linux-aarch64"),
            ),
            (
                ("linux", "aarch64", false, true),
                Some("bun-linux-aarch64-musl"),
            ),
            (("linux", "riscv64", false, false), None),
        ] {
            let (os, arch, avx2, musl) = machine;
            assert_eq!(name(os, arch, avx2, musl), expected, "{machine:?}");
        }
        for package in PACKAGES {
            assert!(package.integrity.starts_with("sha512-"));
            // 64 bytes in base64.
            assert_eq!(package.integrity.len(), 7 + 88, "{}", package.name);
        }
        assert_eq!(BUN_SPEC, format!("bun@{BUN_VERSION}"));
    }

    #[test]
    fn the_c_library_is_that_of_the_machine() {
        let root = tempfile::tempdir().unwrap();
        let touch = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        assert!(!musl(root.path(), "x86_64"));
        touch("lib/ld-musl-x86_64.so.1");
        assert!(musl(root.path(), "x86_64"));
        touch("lib64/ld-linux-x86-64.so.2");
        assert!(!musl(root.path(), "x86_64"));
    }

    #[test]
    fn the_lock_names_version_and_checksum_and_no_address() {
        let [(_, manifest), (_, lock)] = PACKAGES[0].manifests();
        insta::assert_snapshot!(manifest, @r#"{"private":true,"dependencies":{"@oven/bun-linux-x64":"1.4.5"}}"#);
        assert!(
            lock.contains(PACKAGES[0].integrity) && !lock.contains("http"),
            "{lock}"
        );
    }

    #[tokio::test]
    async fn what_is_there_is_used_and_nothing_to_fetch_with_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let spawner = Spawner::new().unwrap();
        let error = setup_bun(data.path(), None, &spawner, &mut |_| {})
            .await
            .unwrap_err();
        assert_eq!(error.code(), "plugin.bun");
        insta::assert_snapshot!(error, @"Bun 1.4.5 could not be installed: npm was not found");
        let place = bun_path(data.path());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "").unwrap();
        let found = setup_bun(data.path(), None, &spawner, &mut |_| {}).await;
        assert_eq!(found.unwrap(), place);
    }
}
