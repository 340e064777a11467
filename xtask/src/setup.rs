//! `cargo xtask setup`: installs what the tests need besides cargo.

mod install;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::install::{Install, install};
use crate::sh::{self, Arguments, check, command, there};
use crate::{Error, Result, failed, usage};

/// Programs that tests start, with their Debian packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("git", "git"),
    ("rg", "ripgrep"),
    ("python3", "python3"),
    ("tmux", "tmux"),
    ("strace", "strace"),
    ("mmdebstrap", "mmdebstrap"),
    ("chromium", "chromium"),
];

/// Tests that need one of these are skipped with a message.
const OPTIONAL: [&str; 4] = ["tmux", "strace", "mmdebstrap", "chromium"];

/// Installs everything; a second call finds it and does not use the network.
pub(crate) fn run(arguments: &[String]) -> Result {
    if let Some(word) = Arguments::new(arguments).next() {
        return usage(format!("setup takes no `{word}`"));
    }
    small()?;
    Agents::begin().finish(None);
    Ok(())
}

/// What takes seconds.
///
/// # Errors
/// What every test run needs is missing.
pub(crate) fn small() -> Result {
    programs()?;
    let tools = tools()?;
    println!("setup: Bun is {}", bun(&tools)?.display());
    if install("editors").is_err() {
        println!(
            "setup: no test is the editor of `outrigger acp`: npm could not install its library"
        );
    }
    if install("conformance").is_err() {
        println!("setup: the MCP conformance suite is not run: npm could not install it");
    }
    Ok(())
}

/// The agents of other vendors: a gigabyte, which `cargo xtask test` installs beside its first stages. Without them, their tests are
/// skipped, also where npm's registry answers: so large a download may fail, and is no reason to land nothing.
pub(crate) struct Agents(Result<Install>);

impl Agents {
    /// Begins to install them.
    pub(crate) fn begin() -> Self {
        Self(Install::begin("agents"))
    }

    /// Waits for them; not longer than `limit` where there is one.
    pub(crate) fn finish(self, limit: Option<Duration>) {
        let installed = self.0.and_then(|install| install.finish(limit));
        if let Err(Error::Failed(why) | Error::Usage(why)) = installed {
            println!("setup: no other vendor's agent is run: {why}");
        }
    }
}

/// Installs Debian packages, as root, and reports in one line what is still missing.
fn programs() -> Result {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !there(program))
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() && is_root() && there("apt-get") {
        println!("setup: installing {}", missing.join(" "));
        // Without the network the tests that need none of them still run; missing required programs are an error below.
        if install_packages(&missing).is_err() {
            println!("setup: Debian's packages could not be installed");
        }
    }
    for program in OPTIONAL.iter().filter(|program| !there(program)) {
        println!(
            "setup: tests that need {program} are skipped: it is not there and could not be installed"
        );
    }
    let needed = PROGRAMS
        .iter()
        .map(|(program, _)| *program)
        .filter(|program| !OPTIONAL.contains(program))
        .chain(["node", "npm"]);
    let missing: Vec<&str> = needed.filter(|program| !there(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    failed(format!(
        "the tests need {}: install it (node: version 20 or later) and run `cargo xtask setup` again",
        missing.join(", ")
    ))
}

pub(crate) fn install_packages(names: &[&str]) -> Result {
    check(command("apt-get").args(["update", "-q"]))?;
    let mut install = command("apt-get");
    install
        .args(["install", "-y", "-q", "--no-install-recommends"])
        .args(names);
    check(install.env("DEBIAN_FRONTEND", "noninteractive"))
}

pub(crate) fn is_root() -> bool {
    sh::output(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Installs Bun and the plugin SDK in `.work/tools/node_modules`.
///
/// # Errors
/// npm cannot install them.
pub(crate) fn tools() -> Result<PathBuf> {
    let tools = install("tools")?;
    if std::env::consts::ARCH == "x86_64" && !has_avx2() && bun(&tools).is_err() {
        // npm's `bun` no longer includes the build for CPUs without AVX2.
        let package = format!("@oven/bun-linux-x64-baseline@{}", bun_version()?);
        check(command("npm").current_dir(&tools).args([
            "install",
            "--no-save",
            "--package-lock=false",
            "--ignore-scripts",
            &package,
        ]))?;
    }
    Ok(tools)
}

/// Installs OpenCode in `.work/reference/node_modules`; returns the path of its binary.
///
/// # Errors
/// npm cannot install it, or it has no binary for this machine.
pub(crate) fn reference() -> Result<PathBuf> {
    let modules = install("reference")?.join("node_modules");
    let names = match (std::env::consts::ARCH, has_avx2()) {
        ("aarch64", _) => ["opencode-linux-arm64", "opencode-linux-arm64-musl"],
        (_, true) => ["opencode-linux-x64", "opencode-linux-x64-baseline"],
        (_, false) => [
            "opencode-linux-x64-baseline",
            "opencode-linux-x64-baseline-musl",
        ],
    };
    find(&modules, &names, "bin/opencode")
}

/// Installs the programs whose sandboxes are compared with ours; returns their `node_modules`.
///
/// # Errors
/// npm cannot install them.
pub(crate) fn sandboxes() -> Result<PathBuf> {
    Ok(install("sandboxes")?.join("node_modules"))
}

/// Installs the browser tools that are compared with ours; returns the folder of their `node_modules`.
///
/// # Errors
/// npm cannot install them.
pub(crate) fn browsers() -> Result<PathBuf> {
    install("browsers")
}

/// Returns the version of the recordings.
pub(crate) fn reference_version() -> String {
    let package: Value = serde_json::from_str(include_str!("../../tests/reference/package.json"))
        .unwrap_or_default();
    let version = package.pointer("/dependencies/opencode-ai");
    version
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Returns the Bun binary in `tools` for this CPU. Install scripts are off, so `node_modules/.bin/bun` is only a text that
/// says so.
///
/// # Errors
/// There is none.
pub(crate) fn bun(tools: &Path) -> Result<PathBuf> {
    let names: &[&str] = match (std::env::consts::ARCH, has_avx2()) {
        ("aarch64", _) => &["bun-linux-aarch64", "bun-linux-aarch64-musl"],
        (_, true) => &["bun-linux-x64", "bun-linux-x64-musl"],
        (_, false) => &["bun-linux-x64-baseline", "bun-linux-x64-musl-baseline"],
    };
    find(&tools.join("node_modules/@oven"), names, "bin/bun")
}

fn find(modules: &Path, names: &[&str], file: &str) -> Result<PathBuf> {
    names
        .iter()
        .map(|name| modules.join(name).join(file))
        .find(|path| path.is_file())
        .map_or_else(
            || {
                failed(format!(
                    "{} has none of {}",
                    modules.display(),
                    names.join(", ")
                ))
            },
            Ok,
        )
}

fn has_avx2() -> bool {
    fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.split_whitespace().any(|flag| flag == "avx2"))
}

/// Returns the version of Bun that tests/tools/package.json pins.
fn bun_version() -> Result<String> {
    let text = sh::read(&sh::root().join("tests/tools/package.json"))?;
    let package: Value = serde_json::from_str(&text)
        .or_else(|error| failed(format!("tests/tools/package.json: {error}")))?;
    package["dependencies"]["bun"].as_str().map_or_else(
        || failed("tests/tools/package.json pins no bun"),
        |version| Ok(version.to_owned()),
    )
}
