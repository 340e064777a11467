//! Installs and runs the packages in a Debian system with only its essential packages, so that an undeclared dependency is
//! missing. As root, with mmdebstrap.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Release, copy};
use crate::sh::{self, check as run, command, work};
use crate::{Result, ci, failed, setup};

/// The folder of the packages in that system.
const HANDED_OUT: &str = "opt/dist";

/// Also reports this at the end of `cargo xtask test`, like a skipped test.
fn not_tried(why: &str) -> Result {
    let line = format!("dist: tarball and .deb are not tried: {why}");
    println!("{line}");
    ci::note_skipped(&line)
}

pub(super) fn check(release: &Release, tarball: &Path, deb: &Path, npm: &[PathBuf]) -> Result {
    by_npm(release, npm)?;
    if !setup::is_root() || !sh::there("mmdebstrap") {
        return not_tried("that needs root and mmdebstrap (`apt-get install mmdebstrap`)");
    }
    if make_system().is_err() {
        return not_tried("mmdebstrap could not make a system to try them in");
    }
    let root = system()?;
    if in_system(&root, "true").is_err() {
        return not_tried("no other root folder can be entered here");
    }
    let handed_out = root.join(HANDED_OUT);
    super::create(&handed_out)?;
    for path in [tarball, deb] {
        copy(path, &handed_out.join(name(path)))?;
    }
    let tarball = name(tarball);
    let folder = tarball.trim_end_matches(".tar.gz");
    in_system(
        &root,
        &format!(
            "tar -xzf /{HANDED_OUT}/{tarball} -C /opt && test \"$(/opt/{folder}/outrigger --version)\" = \"outrigger {}\"",
            release.version
        ),
    )?;
    in_system(
        &root,
        &format!(
            "dpkg --install /{HANDED_OUT}/{} && outrigger demo && test -s /usr/share/man/man1/outrigger.1.gz && dpkg --purge outrigger && test ! -e /usr/bin/outrigger",
            name(deb)
        ),
    )?;
    println!("dist: the tarball and the .deb run in a system that has nothing else");
    Ok(())
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the archive of the system, built once; each check starts with a copy.
fn archive() -> PathBuf {
    work("clean-root.tar")
}

fn make_system() -> Result {
    if archive().is_file() {
        return Ok(());
    }
    let part = work("clean-root.part.tar");
    let mut make = command("mmdebstrap");
    make.args([
        "--quiet",
        "--variant=essential",
        "--mode=root",
        "--include=libgcc-s1",
    ])
    .arg(codename()?)
    .arg(&part);
    let sources = Path::new("/etc/apt/sources.list.d/debian.sources");
    if sources.is_file() {
        make.arg(sources);
    }
    run(&mut make)?;
    fs::rename(&part, archive()).or_else(|error| failed(format!("{}: {error}", part.display())))
}

/// Returns a new copy of the system.
fn system() -> Result<PathBuf> {
    let root = super::empty("root")?;
    run(command("tar")
        .args(["--extract", "--numeric-owner", "--file"])
        .arg(archive())
        .arg("--directory")
        .arg(&root))?;
    Ok(root)
}

fn codename() -> Result<String> {
    let text = sh::read(Path::new("/etc/os-release"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map_or_else(
            || failed("/etc/os-release names no release"),
            |name| Ok(name.trim_matches('"').to_owned()),
        )
}

/// Runs a line in it, with its own /proc and /dev.
fn in_system(root: &Path, line: &str) -> Result {
    let script = format!(
        "set -e; mount -t proc proc \"$1/proc\"; mount --bind /dev \"$1/dev\"; exec chroot \"$1\" /bin/sh -ec '{line}'"
    );
    let mut shell = command("unshare");
    shell
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            &script,
            "sh",
        ])
        .arg(root)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", "/root");
    sh::output(&mut shell).map(drop)
}

/// Installs the npm packages from their files, and runs the command that npm adds to the path.
fn by_npm(release: &Release, packages: &[PathBuf]) -> Result {
    let folder = super::empty("npm-prefix")?;
    let mut install = command("npm");
    install
        .args([
            "install",
            "--global",
            "--offline",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--omit=optional",
            "--prefix",
        ])
        .arg(&folder)
        .args(packages);
    run(&mut install)?;
    let said = sh::output(command(folder.join("bin/outrigger")).arg("--version"))?;
    if said.trim() == format!("outrigger {}", release.version) {
        println!("dist: the npm packages run");
        return Ok(());
    }
    failed(format!("the command that npm installed says {said}"))
}
