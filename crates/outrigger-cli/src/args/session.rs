//! The command line of `outrigger session`.

use std::path::PathBuf;

use clap::Subcommand;

/// `outrigger session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project
    List {
        /// Of every project
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a session's conversation, tools merged with their results
    Show {
        /// Which; without it the last one
        id: Option<String>,
    },
    /// Delete a session and its child sessions
    Delete {
        /// Which
        id: String,
    },
    /// Print a session as JSON
    Export {
        /// Which; without it the last one
        id: Option<String>,
    },
    /// Replay a session's turns through the kernel and check the log's hash chain
    Verify {
        /// Which; without it every session of this folder
        id: Option<String>,
        /// Every session of the store
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Read what can be read from a damaged store into a new one
    Salvage {
        /// The new file
        into: PathBuf,
    },
}
