//! The npm packages: one with the program for each platform, and a small one that selects. npm installs only the matching
//! platform (`os`, `cpu`), so no script downloads anything.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Release, copy, create, empty, write_file};
use crate::Result;
use crate::sh::{self, command};

/// Starts the program of the platform's package, with the same arguments, descriptors and exit code.
const PICKER: &str = r#"#!/usr/bin/env node
"use strict";
const { spawnSync } = require("node:child_process");
const platform = `outrigger-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${platform}/bin/outrigger`);
} catch {
  console.error(
    `outrigger: the package ${platform} is not installed: there is none for this platform, or npm ran with --omit=optional`,
  );
  process.exit(1);
}
// Signals of the terminal reach the program itself; this process waits for it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
// What is started next time: no command may put another script in its place.
const launcher = [__filename, process.argv[1]].join(":");
const env = { ...process.env, OUTRIGGER_LAUNCHER: launcher };
const result = spawnSync(program, process.argv.slice(2), { stdio: "inherit", env });
if (result.error) {
  console.error(`outrigger: ${program} cannot be started: ${result.error.message}`);
  process.exit(1);
}
if (result.signal) process.exit(128 + require("node:os").constants.signals[result.signal]);
process.exit(result.status ?? 1);
"#;

/// The platforms with packages, each built on its own machine.
const PLATFORMS: [&str; 2] = ["x64", "arm64"];

pub(super) fn write(release: &Release, staged: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    Ok(vec![
        platform(release, staged, out)?,
        picker(release, staged, out)?,
    ])
}

fn platform(release: &Release, staged: &Path, out: &Path) -> Result<PathBuf> {
    let name = format!("outrigger-linux-{}", release.npm_arch);
    let manifest = json!({
        "name": name,
        "version": release.version,
        "description": format!("Outrigger for Linux on {}; install `outrigger`", release.npm_arch),
        "license": "MIT OR Apache-2.0",
        "os": ["linux"],
        "cpu": [release.npm_arch],
        "libc": ["glibc"],
        "files": ["bin", "man"],
        "preferUnplugged": true,
    });
    let folder = package(&name, &manifest, staged)?;
    let bin = folder.join("bin");
    create(&bin)?;
    copy(&staged.join("outrigger"), &bin.join("outrigger"))?;
    pack(&folder, out)
}

fn picker(release: &Release, staged: &Path, out: &Path) -> Result<PathBuf> {
    let platforms: serde_json::Map<String, Value> = PLATFORMS
        .iter()
        .map(|it| (format!("outrigger-linux-{it}"), json!(release.version)))
        .collect();
    let manifest = json!({
        "name": "outrigger",
        "version": release.version,
        "description": "Coding agent that runs OpenCode's plugins in sandboxed processes",
        "license": "MIT OR Apache-2.0",
        "bin": { "outrigger": "bin/outrigger.js" },
        "files": ["bin"],
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms,
    });
    let folder = package("outrigger", &manifest, staged)?;
    let bin = folder.join("bin");
    create(&bin)?;
    write_program(&bin.join("outrigger.js"))?;
    pack(&folder, out)
}

fn write_program(path: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt as _;
    write_file(path, PICKER)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .or_else(|error| crate::failed(format!("{}: {error}", path.display())))
}

fn package(name: &str, manifest: &Value, staged: &Path) -> Result<PathBuf> {
    let folder = empty(&format!("npm-{name}"))?;
    write_file(&folder.join("package.json"), &format!("{manifest:#}\n"))?;
    for text in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&staged.join(text), &folder.join(text))?;
    }
    Ok(folder)
}

fn pack(folder: &Path, out: &Path) -> Result<PathBuf> {
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let mut pack = command("npm");
    pack.current_dir(folder)
        .args(["pack", "--silent", "--pack-destination"])
        .arg(&out);
    let name = sh::output(&mut pack)?;
    Ok(out.join(name.trim()))
}
