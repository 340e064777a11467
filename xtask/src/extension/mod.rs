//! `cargo xtask extension`: the browser extension, from the kernel and its sources in `extension/` to `extension/dist`, and its tests in
//! Chromium.

mod kernel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::kernel::{NativeTests, Toolchain};
use crate::sh::{self, Arguments, cargo, check, command, there};
use crate::{Result, failed, parity, setup, usage};

/// Builds the extension; `--kernel`: only the kernel, `--browser`: also tests it in Chromium.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let (mut only_kernel, mut browser) = (false, false);
    while let Some(argument) = arguments.next() {
        match argument {
            "--kernel" => only_kernel = true,
            "--browser" => browser = true,
            other => return usage(format!("extension takes no `{other}`")),
        }
    }
    let Some(toolchain) = Toolchain::find() else {
        return failed(kernel::advice());
    };
    if !only_kernel {
        install(&folder())?;
    }
    let kernel = kernel::checked(toolchain, NativeTests::OfTheCrate)?;
    if only_kernel {
        return Ok(());
    }
    build(&kernel)?;
    if browser {
        in_browser(&[])?;
        lent()?;
    }
    Ok(())
}

/// Runs the stage of CI; `registry`: npm reaches its registry. Returns what could not be tested, if anything.
pub(crate) fn stage(registry: bool) -> Result<Option<&'static str>> {
    no_addresses()?;
    let Some(toolchain) = Toolchain::find() else {
        return Ok(Some(
            "extension: there is no compiler for wasm32 (neither rustup's target nor Debian's rustc-web): nothing of it was built",
        ));
    };
    let is_installable = registry || folder().join("node_modules").is_dir();
    if is_installable {
        // This includes the optimiser.
        install(&folder())?;
    }
    let kernel = kernel::checked(toolchain, NativeTests::OfTheWorkspace)?;
    if !is_installable {
        return Ok(Some(
            "extension: npm's registry does not answer: it was not built",
        ));
    }
    build(&kernel)?;
    if !there("chromium") && setup::is_root() && there("apt-get") {
        // Without the network there is none, which is reported below.
        let _ = setup::install_packages(&["chromium"]);
    }
    if !there("chromium") {
        return Ok(Some("extension: there is no Chromium to try it in"));
    }
    // Testing a crash at each boundary takes minutes, and the time to wake depends on the machine: `--browser` includes these.
    in_browser(&[
        "turn",
        "person",
        "conformance",
        "frames",
        "dialogs",
        "network",
        "bridge",
    ])?;
    lent()?;
    Ok(None)
}

fn folder() -> PathBuf {
    sh::root().join("extension")
}

fn npm(folder: &Path, arguments: &[&str]) -> Command {
    let mut npm = command("npm");
    npm.current_dir(folder).args(arguments);
    npm
}

/// Installs the versions in `package-lock.json`, unless they are installed.
fn install(folder: &Path) -> Result {
    let changed = |name: &str| fs::metadata(folder.join(name)).and_then(|it| it.modified());
    let installed = changed("node_modules/.package-lock.json");
    if let (Ok(installed), Ok(wanted)) = (installed, changed("package-lock.json"))
        && installed >= wanted
    {
        return Ok(());
    }
    check(&mut npm(
        folder,
        &["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
    ))
}

/// Builds the extension, and a variant for tests whose worker stops where it may crash.
fn build(kernel: &Path) -> Result {
    // Cards and texts of the panel are shared with the page.
    install(&sh::root().join("web"))?;
    for script in ["typecheck", "lint", "test"] {
        check(&mut npm(&folder(), &["run", "--silent", script]))?;
    }
    for (mode, dist) in [("production", "dist"), ("faults", "dist-faults")] {
        check(&mut npm(
            &folder(),
            &["run", "--silent", "build", "--", "--mode", mode],
        ))?;
        let target = folder().join(dist).join("kernel.wasm");
        let copied = fs::copy(kernel, &target);
        copied.or_else(|error| failed(format!("{}: {error}", target.display())))?;
    }
    println!(
        "extension: {} can be loaded",
        folder().join("dist").display()
    );
    Ok(())
}

/// Runs the tests with these names in Chromium, or all. One has a bridge of the program.
fn in_browser(names: &[&str]) -> Result {
    let mut node = command("node");
    node.arg("extension/tests/browser/run.mjs").args(names);
    check(node.env("OUTRIGGER_BIN", parity::release_binary()?))
}

/// Runs the suite of the native provider in a browser that the extension lends.
fn lent() -> Result {
    let suite = "package(outrigger-browser) & test(/^(conformance|shared|lent)::/)";
    let mut nextest = cargo(&["nextest", "run", "--workspace", "-E", suite]);
    check(nextest.env("OUTRIGGER_TEST_LENT", "1"))
}

/// Checks that the lock file contains no URLs, so that it works with any registry.
fn no_addresses() -> Result {
    if sh::read(&folder().join("package-lock.json"))?.contains("\"resolved\"") {
        failed(
            "extension/package-lock.json has addresses of a registry: `npm install --omit-lockfile-registry-resolved`",
        )
    } else {
        Ok(())
    }
}
