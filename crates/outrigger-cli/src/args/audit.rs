//! The command line of `outrigger audit`.

use clap::{Args, Subcommand, ValueEnum};

/// `outrigger audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List the newest records that match
    List {
        #[command(flatten)]
        filter: Box<AuditFilter>,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show all fields of a record
    Show {
        /// Its number
        number: i64,
    },
    /// Check that no record was changed, removed, moved or put in, and that the end is there
    Verify {
        /// The key that seals have to be made with, as an earlier run printed it
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Print the records that match
    Export {
        #[command(flatten)]
        filter: Box<AuditFilter>,
        /// In which form
        #[arg(long = "format", value_enum, default_value_t = ExportForm::Jsonl)]
        form: ExportForm,
    },
}

/// Forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One JSON object a line
    Jsonl,
    /// OpenTelemetry traces, in the JSON form of OTLP files
    Otlp,
}

/// Which records; all that is given has to hold.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AuditFilter {
    /// Kind (hook, tool_intent, tool_outcome, permission, grant, life_cycle, process, client, network, bridge, retention); more than once: any
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// Trace: a turn, or a run of the program
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Step of the turn
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<String>,
    /// Hook, by its point or by OpenCode's name
    #[arg(long, value_name = "NAME")]
    pub(crate) hook: Option<String>,
    /// Plugin
    #[arg(long, value_name = "ID")]
    pub(crate) plugin: Option<String>,
    /// Plugin that another one hosts
    #[arg(long, value_name = "ID")]
    pub(crate) sub_plugin: Option<String>,
    /// Hash of the input, or how it begins
    #[arg(long, value_name = "HEX")]
    pub(crate) input_hash: Option<String>,
    /// Hash of the output, or how it begins
    #[arg(long, value_name = "HEX")]
    pub(crate) output_hash: Option<String>,
    /// Decision: continue, patch, block, refused, allow, deny, completed ...
    #[arg(long, value_name = "WORD")]
    pub(crate) decision: Option<String>,
    /// Result of the policy check, or how it begins: passed, refused
    #[arg(long, value_name = "WORD")]
    pub(crate) policy: Option<String>,
    /// Who caused it: user, client, model, project, plugin, a plugin's name, or what somebody did (prompted, contributed, called, changed, answered); more than once: all of it by one
    #[arg(long, value_name = "WORD")]
    pub(crate) cause: Vec<String>,
    /// What it was done to contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// Only what missed its deadline
    #[arg(long)]
    pub(crate) timeout: bool,
    /// Only what failed
    #[arg(long)]
    pub(crate) errored: bool,
    /// Only what took at least so many milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) least_ms: Option<f64>,
    /// From this time on: 2h, 3d, or 2026-11-22T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}
