//! The command lines of `outrigger run` and `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::server::ServerArgs;

/// `outrigger run`.
#[derive(Args, Debug, Default)]
pub(crate) struct RunArgs {
    /// What to say; more comes from standard input when that is not a terminal
    pub(crate) message: Vec<String>,
    /// Run this slash command, with the message as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Go on with the last session of this folder
    #[arg(short = 'c', long = "continue")]
    pub(crate) resume: bool,
    /// Go on with this session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Work in a copy of the session (with -c or -s)
    #[arg(long)]
    pub(crate) fork: bool,
    /// Model, as provider/model
    #[arg(short = 'm', long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Named set of model options
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// File or folder to go with the message; can be given more than once
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Title of the session; empty: the message
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// Show what the model thinks
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Allow what no rule denies, without asking
    #[arg(long)]
    pub(crate) auto: bool,
    /// Show start and result of a tool apart instead of as one
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
    /// Run it on this server instead of here
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The answer on standard output, the rest on standard error
    #[default]
    Default,
    /// One JSON event per line on standard output
    Json,
}

/// `outrigger demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Keep the demo's project here instead of in a temporary folder
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
}
