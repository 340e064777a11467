//! Shell completions, generated from the command line's definition.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::terminal::out;

/// Prints the script.
pub(crate) fn print(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut crate::args::Cli::command(),
        "outrigger",
        &mut script,
    );
    out(&String::from_utf8_lossy(&script));
}
