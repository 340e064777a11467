//! `cargo xtask web`: builds the page from its sources in `web/` to `web/dist`, which the program embeds, and tests it in a browser.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use crate::ci::{note_skipped, registry_answers};
use crate::sh::{self, Arguments, cargo, check, command, there};
use crate::{Result, failed, parity, setup, usage};

/// Builds the page; with `--check` restores the previous state, and `--browser BIN` tests it in Chromium.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let (mut is_check, mut browser, mut screens) = (false, None, false);
    while let Some(argument) = arguments.next() {
        match argument {
            "--check" => is_check = true,
            "--browser" => browser = Some(parity::absolute(arguments.value(argument)?)?),
            "--screens" => screens = true,
            other => return usage(format!("web takes no `{other}`")),
        }
    }
    if let Some(binary) = browser {
        install()?;
        return in_browser(&binary, screens);
    }
    install()?;
    for script in ["typecheck", "lint", "test"] {
        check(npm().args(["run", "--silent", script]))?;
    }
    if is_check {
        return no_addresses();
    }
    build()
}

/// Runs the stage of CI: the page is checked and built if npm is reachable, so that the binaries of later stages have it.
pub(crate) fn stage() -> Result {
    if !registry_answers() && !folder().join("node_modules").is_dir() {
        return note_skipped("web: npm's registry does not answer: the page was not built");
    }
    no_addresses()?;
    run(&[])
}

/// Runs the stage of CI: the page of the release binary in a browser.
pub(crate) fn browser_stage() -> Result {
    if !folder().join("dist/index.html").is_file() {
        return note_skipped("web: there is no page to try in a browser");
    }
    if !there("chromium") && setup::is_root() && there("apt-get") {
        // Without the network there is none, which is reported below.
        let _ = setup::install_packages(&["chromium"]);
    }
    if !there("chromium") {
        return note_skipped("web: there is no Chromium to try the page in");
    }
    in_browser(&parity::release_binary()?, false)
}

fn folder() -> PathBuf {
    sh::root().join("web")
}

fn npm() -> Command {
    let mut npm = command("npm");
    npm.current_dir(folder());
    npm
}

/// Installs the versions in `package-lock.json`, without install scripts. A second call finds them.
fn install() -> Result {
    let there = fs::read(folder().join("node_modules/.package-lock.json")).is_ok();
    let stamp = sh::work("web-lock.json");
    let lock = fs::read(folder().join("package-lock.json"))
        .or_else(|error| failed(format!("web/package-lock.json: {error}")))?;
    if there && fs::read(&stamp).is_ok_and(|known| known == lock) {
        return Ok(());
    }
    check(npm().args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))?;
    fs::create_dir_all(sh::work(""))
        .and_then(|()| fs::write(&stamp, lock))
        .or_else(|error| failed(format!("{}: {error}", stamp.display())))
}

/// Builds the files of the page to `web/dist`, which `outrigger-web` embeds.
fn build() -> Result {
    let dist = folder().join("dist");
    let entries =
        fs::read_dir(&dist).or_else(|error| failed(format!("{}: {error}", dist.display())))?;
    for entry in entries.flatten() {
        if entry.file_name() != ".gitignore" {
            let gone = fs::remove_file(entry.path());
            gone.or_else(|error| failed(format!("{}: {error}", entry.path().display())))?;
        }
    }
    check(npm().args(["run", "--silent", "build"]))?;
    // The compiler does not know that it depends on the files of the folder.
    let reads = sh::root().join("crates/outrigger-web/src/lib.rs");
    let touched = fs::File::options().append(true).open(&reads);
    touched
        .and_then(|file| file.set_modified(SystemTime::now()))
        .or_else(|error| failed(format!("{}: {error}", reads.display())))
}

/// Checks that the lock file contains no URLs, so that it works with any registry.
fn no_addresses() -> Result {
    if sh::read(&folder().join("package-lock.json"))?.contains("\"resolved\"") {
        failed(
            "web/package-lock.json has addresses of a registry: `npm install --omit-lockfile-registry-resolved`",
        )
    } else {
        Ok(())
    }
}

fn in_browser(binary: &std::path::Path, screens: bool) -> Result {
    // Of the workspace: by itself its dependencies would be compiled again, with fewer features.
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--workspace",
        "--example",
        "fill",
    ]))?;
    let mut exported = command("node");
    check(
        exported
            .arg("web/tests/export/run.mjs")
            .env("OUTRIGGER_BIN", binary),
    )?;
    let mut node = command("node");
    node.arg("web/tests/browser/run.mjs");
    if screens {
        node.args(["--screens", "docs/screens"]);
    }
    let bun = setup::bun(&setup::tools()?)?;
    check(node.env("OUTRIGGER_BIN", binary).env("OUTRIGGER_BUN", bun))
}
