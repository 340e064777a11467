//! The log.

use tracing_subscriber::EnvFilter;

use crate::args::{Global, LogLevel};
use crate::terminal;

/// Sends the log to standard error: warnings always, more on request (`--print-logs`, `--log-level`, `OUTRIGGER_LOG`).
pub(crate) fn init(global: &Global) {
    let level = match global.log_level {
        Some(LogLevel::Debug) => "debug",
        Some(LogLevel::Info) => "info",
        Some(LogLevel::Warn) => "warn",
        Some(LogLevel::Error) => "error",
        None if global.print_logs => "info",
        None => "warn",
    };
    // What keeps a plugin from running is shown where it is loaded (`progress`).
    let registry = if level == "warn" { "error" } else { level };
    // One line for one event; what says the same of it once more is for the log.
    let detail = if level == "warn" { "error" } else { level };
    // A target covers all that begin with it: `outrigger` every crate of this program.
    let fallback = format!(
        "warn,outrigger={level},plugin={level},outrigger_plugin_registry::registry={registry},plugin::perf={level},plugin::seq={level},plugin::detail={detail}"
    );
    let filter =
        EnvFilter::try_from_env("OUTRIGGER_LOG").unwrap_or_else(|_| EnvFilter::new(fallback));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| terminal::Log)
        .with_target(false)
        .with_ansi(false);
    if global.print_logs || global.log_level.is_some() {
        log.init();
    } else {
        // A warning between the lines of an answer is for the person who reads them, not for a log file.
        log.without_time().init();
    }
}
