//! The error that ends a command, for users and programs.

use std::process::ExitCode;

use outrigger_client::ClientError;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::SessionId;
use serde_json::json;

use crate::args::Format;
use crate::exit;
use crate::terminal;
use crate::terminal::{json_line, out};

/// The error that ends a command.
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

    /// Converts an error of an agent, by its code.
    pub(crate) fn of_agent(code: &str, message: String, hint: Option<String>) -> Self {
        let exit = match code {
            "plugin.strict" => exit::PLUGINS,
            ClientError::USAGE => exit::USAGE,
            _ if code.starts_with("config.") => exit::USAGE,
            _ => exit::FAILED,
        };
        Self {
            exit,
            ..Self::new(code, message, hint)
        }
    }

    /// Converts an error of one of the crates below.
    pub(crate) fn of(error: &dyn Diagnose) -> Self {
        Self::of_agent(error.code(), error.to_string(), error.hint())
    }

    pub(crate) fn usage(message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            exit: exit::USAGE,
            ..Self::new("cli.usage", message, hint)
        }
    }

    /// An error for the id of a plugin that does not exist; `hint` names the command that lists the known ones.
    pub(crate) fn unknown_plugin(id: &str, hint: &str) -> Self {
        Self::usage(format!("no plugin `{id}`"), Some(hint.to_owned()))
    }

    /// Sets another exit code.
    pub(crate) fn exiting(self, exit: u8) -> Self {
        Self { exit, ..self }
    }

    /// Returns whether it has this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// Formats it for users: what failed, its code, and what to do.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("error: {} [{}]\n", self.message, self.code);
        if let Some(hint) = &self.hint {
            text.push_str(&format!("  hint: {hint}\n"));
        }
        text
    }

    /// Formats it as one line, for a place that shows by itself that it is an error.
    pub(crate) fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// Sets the session in which it failed.
    pub(crate) fn in_session(self, id: &SessionId) -> Self {
        Self {
            session: Some(id.clone()),
            ..self
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self::of_agent(error.code(), error.message().to_owned(), hint)
    }
}

/// Converts errors of the crates below by what they say of themselves.
macro_rules! from_diagnoses {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        })*
    };
}

from_diagnoses!(
    outrigger_agent::AgentError,
    outrigger_agent::LoginError,
    outrigger_agent::TrustError,
    outrigger_export::ExportError,
    outrigger_import::ImportError,
    outrigger_models::CredentialError,
    outrigger_store::StoreError,
);

/// Prints a failure: what failed, its code, and what to do. With a JSON format it is also printed as a line.
pub(crate) fn fail(failure: &Failure, format: Format) -> ExitCode {
    if format.has_events() {
        let mut data = json!({ "message": failure.message, "code": failure.code });
        if let (Some(data), Some(hint)) = (data.as_object_mut(), &failure.hint) {
            data.insert("hint".into(), json!(hint));
        }
        let body = json!({ "error": { "name": "UnknownError", "data": data } });
        out(&json_line("error", failure.session.as_ref(), body));
    }
    if format.has_result() {
        let result = json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
            "result": failure.message, "code": failure.code, "session_id": failure.session });
        out(&format!("{result}\n"));
    }
    terminal::err(&failure.text());
    ExitCode::from(failure.exit)
}
