//! The command lines of `outrigger run` and `demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::continued::ContinueArgs;
use super::server::ServerArgs;

/// `outrigger run`.
#[derive(Args, Debug, Default)]
pub(crate) struct RunArgs {
    /// Prompt; standard input is added when it is not a terminal
    pub(crate) message: Vec<String>,
    /// Run this slash command, with the message as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    #[command(flatten)]
    pub(crate) continued: ContinueArgs,
    /// Model to use, as provider/model
    #[arg(short = 'm', long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Agent to use
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Let another agent do it: claude, codex, gemini, or acp:COMMAND
    #[arg(long, value_name = "EXECUTOR", conflicts_with_all = ["model", "variant", "command"])]
    pub(crate) executor: Option<String>,
    /// Named set of model options to use
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// File or folder to attach; can be repeated
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Title of the session; without a value, the start of the prompt
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "TITLE")]
    pub(crate) title: Option<String>,
    /// Show the reasoning of the model
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Approve everything that no rule denies
    #[arg(long)]
    pub(crate) auto: bool,
    /// Print the start and the result of a tool call separately
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Default)]
    format: Format,
    /// Output format, as Claude Code names it
    #[arg(long, value_enum, conflicts_with_all = ["format", "json"], value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Run on this server instead of in this process
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl RunArgs {
    /// Returns the format, by whichever option it was chosen.
    pub(crate) fn format(&self) -> Format {
        match self.output_format {
            Some(OutputFormat::Text) => Format::Default,
            Some(OutputFormat::Json) => Format::Result,
            Some(OutputFormat::StreamJson) => Format::Stream,
            None if self.json => Format::Json,
            None => self.format,
        }
    }
}

/// Formats of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The answer on standard output, the rest on standard error
    #[default]
    Default,
    /// One JSON event per line on standard output
    Json,
    /// One JSON object about the result on standard output.
    #[value(skip)]
    Result,
    /// [`Self::Json`], then [`Self::Result`].
    #[value(skip)]
    Stream,
}

impl Format {
    /// Returns whether events are printed as lines of JSON.
    pub(crate) fn has_events(self) -> bool {
        matches!(self, Self::Json | Self::Stream)
    }

    /// Returns whether a result object ends the output.
    pub(crate) fn has_result(self) -> bool {
        matches!(self, Self::Result | Self::Stream)
    }
}

/// The formats of `claude --output-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The answer on standard output, the rest on standard error
    Text,
    /// One JSON object with the answer, its tokens and its cost
    Json,
    /// One JSON event per line, then the object
    StreamJson,
}

/// `outrigger demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Keep the project of the demo in this folder
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
}
