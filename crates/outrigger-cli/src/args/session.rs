//! The command line of `outrigger session`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `outrigger session`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project
    List {
        /// Include all projects
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the conversation of a session
    Show {
        /// Session, or the start of its ID (default: the last one)
        id: Option<String>,
    },
    /// Delete a session and its child sessions
    Delete {
        /// Session, or the start of its ID
        id: String,
    },
    /// Print a session as JSON
    Export {
        /// Session, or the start of its ID (default: the last one)
        id: Option<String>,
    },
    /// Replay turns and verify the hash chain of the log
    Verify {
        /// Session, or the start of its ID (default: all of this folder)
        id: Option<String>,
        /// All sessions of the store
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Recover a damaged store into a new one
    Salvage {
        /// New file
        into: PathBuf,
    },
}

/// `outrigger stats`.
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// Only the last N days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) days: Option<u16>,
    /// Only sessions of this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
