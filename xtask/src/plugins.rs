//! `cargo xtask plugins`: a turn with each published plugin in the second table of docs/plugins-tried.md.

use std::path::PathBuf;

use crate::sh::{Arguments, check, command};
use crate::{Result, parity, setup, usage};

/// Runs them; see `tests/plugins/README.md`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/plugins/run.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--only" | "--grant" | "--json" | "--jobs" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            other => return usage(format!("plugins takes no `{other}`")),
        }
    }
    let tools = setup::tools()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python.arg("--bin").arg(ours);
    python.arg("--bun").arg(setup::bun(&tools)?);
    check(&mut python)
}
