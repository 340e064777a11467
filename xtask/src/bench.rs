//! `cargo xtask bench`: what we cost, held against the reference in the same run.

use std::path::PathBuf;

use crate::sh::{Arguments, check, command};
use crate::{Result, parity, setup, usage};

/// `bench turn` and `bench serve`: see tests/bench/README.md.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let serve = match arguments.next() {
        Some("turn") => false,
        Some("serve") => true,
        Some(other) => return usage(format!("there is no benchmark `{other}`")),
        None => return usage("which benchmark?"),
    };
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg(if serve {
        "tests/bench/serve.py"
    } else {
        "tests/bench/turn.py"
    });
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--home" if serve => return usage("bench serve takes no `--home`".to_owned()),
            "--runs" | "--home" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench takes no `{other}`")),
        }
    }
    let tools = setup::tools()?;
    let reference = setup::reference()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python
        .arg("--ours")
        .arg(ours)
        .arg("--reference")
        .arg(reference);
    if serve {
        python
            .arg("--sdk")
            .arg(tools.join("node_modules/@opencode-ai/sdk"));
    } else {
        python.arg("--bun").arg(setup::bun(&tools)?);
    }
    check(&mut python)
}
