//! The command line of `outrigger audit`.

use clap::{Args, Subcommand, ValueEnum};

/// `outrigger audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List the latest matching records
    List {
        #[command(flatten)]
        filter: Box<AuditFilter>,
        /// Maximum number of records
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show all fields of a record
    Show {
        /// Number of the record
        number: i64,
    },
    /// Verify that no record was changed, removed, moved or inserted
    Verify {
        /// Key that seals must be made with, as an earlier run printed it
        #[arg(long, value_name = "HEX")]
        key: Option<String>,
    },
    /// Export matching records
    Export {
        #[command(flatten)]
        filter: Box<AuditFilter>,
        /// Export format
        #[arg(long = "format", value_enum, default_value_t = ExportForm::Jsonl)]
        form: ExportForm,
    },
}

/// Forms of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One JSON object per line
    Jsonl,
    /// OpenTelemetry traces, as JSON of OTLP files
    Otlp,
}

/// Which records; all that is given must hold.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AuditFilter {
    /// Kind: hook, tool_intent, tool_outcome, permission, grant, life_cycle, process, client, network, bridge or retention; can be repeated
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// Trace: a turn or a run of the program
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Session
    #[arg(short = 's', long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Step of the turn
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<String>,
    /// Hook, by its point or its OpenCode name
    #[arg(long, value_name = "NAME")]
    pub(crate) hook: Option<String>,
    /// Plugin
    #[arg(long, value_name = "ID")]
    pub(crate) plugin: Option<String>,
    /// Plugin hosted by another plugin
    #[arg(long, value_name = "ID")]
    pub(crate) sub_plugin: Option<String>,
    /// Hash of the input, or its start
    #[arg(long, value_name = "HEX")]
    pub(crate) input_hash: Option<String>,
    /// Hash of the output, or its start
    #[arg(long, value_name = "HEX")]
    pub(crate) output_hash: Option<String>,
    /// Decision: continue, patch, block, refused, allow, deny, completed, ...
    #[arg(long, value_name = "WORD")]
    pub(crate) decision: Option<String>,
    /// Result of the policy check: passed or refused
    #[arg(long, value_name = "WORD")]
    pub(crate) policy: Option<String>,
    /// Cause: user, client, model, project, plugin, the name of a plugin, or an action (prompted, contributed, called, changed, answered); if repeated, one cause must match all
    #[arg(long, value_name = "WORD")]
    pub(crate) cause: Vec<String>,
    /// Text in the subject
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: Option<String>,
    /// Only records of missed deadlines
    #[arg(long)]
    pub(crate) timeout: bool,
    /// Only failures
    #[arg(long)]
    pub(crate) errored: bool,
    /// Minimum duration, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) least_ms: Option<f64>,
    /// Start time: 2h, 3d or 2026-11-22T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// End time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}
