//! The command lines of `outrigger export` and `outrigger import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `outrigger export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Session, or the start of its ID (default: the last one)
    pub(crate) session: Option<String>,
    /// What is written
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: FileForm,
    /// File to write, `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave out tool output, file contents and secrets
    #[arg(long)]
    pub(crate) redact: bool,
    /// Include the sessions of its subagents
    #[arg(long)]
    pub(crate) children: bool,
}

/// The forms of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileForm {
    /// The form of the API
    Json,
    /// For any viewer
    Markdown,
    /// One page, for a browser without a network
    Html,
    /// What `opencode import` takes
    Opencode,
}

/// `outrigger import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// opencode, claude, codex, or a file that `outrigger export` or `opencode export` wrote
    pub(crate) from: String,
    /// Folder or file of that program, and sessions (or starts of their IDs); default: the sessions of this folder
    #[arg(value_name = "PATH|SESSION")]
    pub(crate) which: Vec<String>,
    /// List what is there, and import nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Read everything, say what would be imported, and import nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,
    /// Include sessions of all folders
    #[arg(long)]
    pub(crate) all: bool,
}
