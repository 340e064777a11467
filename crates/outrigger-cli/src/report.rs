//! Failures and the log.

use std::process::ExitCode;

use outrigger_agent::AgentError;
use outrigger_protocol::id::SessionId;
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::args::{Format, Global, LogLevel};
use crate::exit;
use crate::terminal;
use crate::view::{json_line, out};

/// What ends a command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: String,
    message: String,
    hint: Option<String>,
    exit: u8,
    session: Option<SessionId>,
}

impl Failure {
    pub(crate) fn new(code: &str, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint,
            exit: exit::FAILED,
            session: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            exit: exit::USAGE,
            ..Self::new("cli.usage", message, hint)
        }
    }

    /// The same with another exit code.
    pub(crate) fn exiting(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// Whether it has this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// As people read it: what failed, its code, and what to do.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error: {} [{}]\n", self.message, self.code);
        if let Some(hint) = &self.hint {
            text.push_str(&format!("  hint: {hint}\n"));
        }
        text
    }

    /// The session in which it failed.
    pub(crate) fn in_session(self, id: &SessionId) -> Self {
        Self {
            session: Some(id.clone()),
            ..self
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let code = error.code();
        let exit = if code.starts_with("config.") {
            exit::USAGE
        } else if matches!(error, AgentError::StrictPlugins { .. }) {
            exit::PLUGINS
        } else {
            exit::FAILED
        };
        Self {
            exit,
            ..Self::new(code, error.to_string(), error.hint())
        }
    }
}

impl From<outrigger_agent::LoginError> for Failure {
    fn from(error: outrigger_agent::LoginError) -> Self {
        let hint = match &error {
            outrigger_agent::LoginError::Plugin(error) => error.hint(),
            _ => None,
        };
        Self::new(error.code(), error.to_string(), hint)
    }
}

impl From<outrigger_models::CredentialError> for Failure {
    fn from(error: outrigger_models::CredentialError) -> Self {
        AgentError::from(error).into()
    }
}

impl From<outrigger_store::StoreError> for Failure {
    fn from(error: outrigger_store::StoreError) -> Self {
        AgentError::from(error).into()
    }
}

/// Prints a failure: what failed, its code, and what to do. A program that reads `--format json` gets it as a line, too.
pub(crate) fn fail(failure: &Failure, format: Format) -> ExitCode {
    if format == Format::Json {
        let mut data = json!({ "message": failure.message, "code": failure.code });
        if let (Some(data), Some(hint)) = (data.as_object_mut(), &failure.hint) {
            data.insert("hint".into(), json!(hint));
        }
        let body = json!({ "error": { "name": "UnknownError", "data": data } });
        out(&json_line("error", failure.session.as_ref(), body));
    }
    terminal::err(&failure.text());
    ExitCode::from(failure.exit)
}

/// Sends the log to standard error: warnings always, more on request (`--print-logs`, `--log-level`, `OUTRIGGER_LOG`).
pub(crate) fn logging(global: &Global) {
    let level = match global.log_level {
        Some(LogLevel::Debug) => "debug",
        Some(LogLevel::Info) => "info",
        Some(LogLevel::Warn) => "warn",
        Some(LogLevel::Error) => "error",
        None if global.print_logs => "info",
        None => "warn",
    };
    // What keeps a plugin from running is shown by whoever loads it (`progress`).
    let registry = if level == "warn" { "error" } else { level };
    let fallback = format!(
        "warn,outrigger_plugins::registry={registry},outrigger={level},outrigger_agent={level},outrigger_config={level},outrigger_js={level},outrigger_mcp={level},outrigger_models={level},outrigger_plugins={level},outrigger_sandbox={level},outrigger_server={level},outrigger_store={level},outrigger_tools={level},plugin::perf={level},plugin::seq={level}"
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
