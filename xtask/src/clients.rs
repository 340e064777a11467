//! `cargo xtask clients`: OpenCode's published client with our server, compared with a recording of OpenCode.

use std::path::{Path, PathBuf};

use crate::sh::{self, Arguments, check, command, work};
use crate::{Result, parity, setup, usage};

/// Runs of OpenCode per recording: a single one does not contain every event.
const RECORDING_RUNS: &str = "--runs=3";

/// Runs the comparison; see tests/clients/README.md.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let mut binary: Option<PathBuf> = None;
    let (mut reference, mut record, mut verbose) = (false, false, false);
    let mut person: Option<&str> = None;
    while let Some(argument) = arguments.next() {
        match argument {
            "--reference" => reference = true,
            "--record" => record = true,
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--tui" => person = Some("tests/clients/tui.py"),
            "--web" => person = Some("tests/clients/web.py"),
            "-v" | "--verbose" => verbose = true,
            other => return usage(format!("clients takes no `{other}`")),
        }
    }
    let tools = setup::tools()?;
    let bun = format!("--bun={}", setup::bun(&tools)?.display());
    let ours_is = |binary: Option<PathBuf>| binary.map_or_else(parity::release_binary, Ok);
    if let Some(script) = person {
        return as_a_person(script, &ours_is(binary)?, &bun);
    }
    let committed = sh::root().join("tests/clients/gold.json");
    if record {
        return call_all(&setup::reference()?, &committed, &[RECORDING_RUNS]);
    }
    let gold = if reference {
        let fresh = work("clients").join("reference.json");
        call_all(&setup::reference()?, &fresh, &[])?;
        fresh
    } else {
        committed
    };
    let ours = work("clients").join("ours.json");
    call_all(&ours_is(binary)?, &ours, &[&bun])?;
    let mut python = command("python3");
    python
        .arg("tests/clients/compare.py")
        .args([&gold, &ours])
        .args(verbose.then_some("--verbose"));
    check(&mut python)
}

/// Operates OpenCode's terminal interface, or its web client in a browser, on our server like a user; the screens go to
/// docs/screens.
fn as_a_person(script: &str, binary: &Path, bun: &str) -> Result {
    check(
        command("python3")
            .arg(script)
            .arg("--bin")
            .arg(binary)
            .arg("--reference")
            .arg(setup::reference()?)
            .arg(bun)
            .args(["--save", "docs/screens"]),
    )
}

fn call_all(binary: &Path, out: &Path, more: &[&str]) -> Result {
    let mut python = command("python3");
    python
        .arg("tests/clients/run.py")
        .arg("--bin")
        .arg(binary)
        .arg("--out")
        .arg(out)
        .args(more);
    check(&mut python)
}
