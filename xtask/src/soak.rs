//! `cargo xtask soak`: runs many sessions on one server, with a plugin that misbehaves at random, and
//! prints a verdict.

use std::path::PathBuf;

use crate::sh::{Arguments, check, command};
use crate::{Result, parity, setup, usage};

/// Runs it; see `tests/soak/README.md`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/soak/soak.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--minutes" | "--sessions" | "--folders" | "--turns" | "--pace" | "--chance"
            | "--faults" | "--json" | "--log" | "--write" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--keep" => {
                python.arg(argument);
            }
            other => return usage(format!("soak takes no `{other}`")),
        }
    }
    let tools = setup::tools()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python.arg("--ours").arg(ours);
    python.arg("--bun").arg(setup::bun(&tools)?);
    check(&mut python)
}
