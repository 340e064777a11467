//! `cargo xtask sandboxes`: compares our sandbox with those of other agents, using the same shell commands.

use std::fs;
use std::path::PathBuf;

use crate::sh::{self, Arguments, check, command, there};
use crate::{Result, failed, parity, setup, usage};

/// The start of the table in the page.
const START: &str = "<!-- table -->\n";
const END: &str = "<!-- end of table -->";

/// Runs the comparison; see `tests/sandboxes/README.md`.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    let mut binary: Option<PathBuf> = None;
    let mut write: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/sandboxes/run.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--only" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--write" => write = Some(sh::root().join("docs/sandboxes.md")),
            "-v" | "--verbose" => {
                python.arg("-v");
            }
            other => return usage(format!("sandboxes takes no `{other}`")),
        }
    }
    // `socat`, which Claude Code's sandbox also needs, has no `--version`.
    if let Some(program) = ["bwrap", "curl"].into_iter().find(|it| !there(it)) {
        return failed(format!(
            "the comparison needs {program}: `apt-get install bubblewrap socat curl`"
        ));
    }
    let modules = setup::sandboxes()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python.arg("--bin").arg(ours).arg("--modules").arg(modules);
    let Some(page) = write else {
        return check(&mut python);
    };
    let table = sh::output(&mut python)?;
    let text = sh::read(&page)?;
    let parts = text
        .split_once(START)
        .and_then(|(head, rest)| rest.split_once(END).map(|(_, tail)| (head, tail)));
    let Some((head, tail)) = parts else {
        return failed(format!("{} has no place for a table", page.display()));
    };
    fs::write(&page, format!("{head}{START}{table}\n{END}{tail}"))
        .or_else(|error| failed(format!("cannot write {}: {error}", page.display())))
}
