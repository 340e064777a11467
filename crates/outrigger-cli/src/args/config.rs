//! The command line of `outrigger config`.

use clap::Subcommand;

/// `outrigger config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value with the place that it came from
    Show {
        /// The merged document as JSON instead
        #[arg(long)]
        json: bool,
    },
    /// Let settings of the project count that changed while Outrigger ran
    Allow,
}
