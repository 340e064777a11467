//! Shell completions, made from the command line's definition.

use clap::CommandFactory as _;
use clap_complete::Shell;

/// Prints the script.
pub(crate) fn print(shell: Shell) {
    clap_complete::generate(
        shell,
        &mut crate::args::Cli::command(),
        "outrigger",
        &mut std::io::stdout(),
    );
}
