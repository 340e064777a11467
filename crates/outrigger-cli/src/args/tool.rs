//! The command line of `outrigger tool`.

use clap::Subcommand;

/// `outrigger tool`.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// List the tools with version, contract, sandbox, source and required capabilities
    #[command(visible_alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show everything a tool declares
    Show {
        /// Tool
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
