//! `cargo xtask bench browser`: MiniWoB++ with our browser tools and with others.

use std::path::{Path, PathBuf};

use crate::sh::{self, Arguments, check, command};
use crate::{Result, failed, parity, setup, usage};

/// Runs the driver `tests/bench/browser.py`.
pub(super) fn run(arguments: &mut Arguments<'_>) -> Result {
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/bench/browser.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--tools" | "--kinds" | "--seeds" | "--minutes" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" | "--first" | "--verbose" => {
                python.arg(argument);
            }
            other => return usage(format!("bench browser takes no `{other}`")),
        }
    }
    let (peers, miniwob) = (setup::browsers()?, miniwob()?);
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python.arg("--ours").arg(ours).arg("--peers").arg(peers);
    check(python.arg("--miniwob").arg(miniwob))
}

/// Returns the tasks from PyPI, installed without their Python dependencies, which are not used.
fn miniwob() -> Result<PathBuf> {
    let pins = sh::root().join("tests/browsers/requirements.txt");
    let (folder, pinned) = (sh::work("miniwob"), sh::read(&pins)?);
    let stamp = folder.join(".installed");
    if !std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        println!("setup: pip install of tests/browsers/requirements.txt in .work/miniwob");
        install(&pins, &folder)?;
        std::fs::write(&stamp, pinned)
            .or_else(|error| failed(format!("{}: {error}", stamp.display())))?;
    }
    Ok(folder.join("miniwob/html"))
}

fn install(pins: &Path, folder: &Path) -> Result {
    let mut pip = command("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--upgrade",
        "--require-hashes",
    ]);
    check(pip.arg("--target").arg(folder).arg("-r").arg(pins))
}
