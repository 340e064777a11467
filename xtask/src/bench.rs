//! `cargo xtask bench`: what we cost, held against the reference in the same run.

use std::path::PathBuf;

use crate::sh::{Arguments, check, command};
use crate::{Result, parity, setup, usage};

/// `bench turn`: see tests/bench/turn.py.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    match arguments.next() {
        Some("turn") => {}
        Some(other) => return usage(format!("there is no benchmark `{other}`")),
        None => return usage("which benchmark?"),
    }
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/bench/turn.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--runs" | "--home" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench turn takes no `{other}`")),
        }
    }
    let bun = setup::bun(&setup::tools()?)?;
    let reference = setup::reference()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    check(
        python
            .arg("--ours")
            .arg(ours)
            .arg("--reference")
            .arg(reference)
            .arg("--bun")
            .arg(bun),
    )
}
