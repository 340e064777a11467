//! The command line of `outrigger config`.

use clap::Subcommand;

/// `outrigger config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value and where it comes from
    Show {
        /// Print the merged document as JSON
        #[arg(long)]
        json: bool,
    },
    /// Accept project settings that changed while Outrigger ran
    Allow,
}
