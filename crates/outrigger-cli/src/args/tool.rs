//! The command line of `outrigger tool`.

use clap::Subcommand;

/// `outrigger tool`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools: version, contract, sandbox, source, capabilities that they need
    #[command(visible_alias = "ls")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show all that a tool declares
    Show {
        /// Which
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}
