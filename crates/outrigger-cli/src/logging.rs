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
    // Problems that keep a plugin from running are shown where it is loaded (`progress`).
    let registry = if level == "warn" { "error" } else { level };
    // One line per event; repetitions are only logged.
    let detail = if level == "warn" { "error" } else { level };
    // A target matches all that start with it: `outrigger` every crate of this program.
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
        // A warning between the lines of an answer is for the user, not for a log file.
        log.without_time().init();
    }
}
