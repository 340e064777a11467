//! Errors in the API's form: `{name, data: {message, …}}` with a matching status.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use outrigger_agent::AgentError;
use outrigger_protocol::Object;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::NamedError;
use serde_json::json;

/// Code and hint of an error. They accompany the response, but are not in its body, which has OpenCode's form.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) hint: Option<String>,
}

/// The result of a handler: a JSON body, or an error.
pub(crate) type JsonResult<T> = Result<Json<T>, ApiError>;

/// An error of a handler.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: NamedError,
    /// For clients in this process.
    fault: Option<Box<Fault>>,
    /// Fields besides name and data: those that OpenCode's clients switch on (`_tag` and its fields).
    fields: Option<Box<Object>>,
}

impl ApiError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: NamedError::new("BadRequest", message),
            fields: None,
            fault: None,
        }
    }
    /// Creates an error for an invalid body. OpenCode reports which part of a request was wrong, and its newer clients
    /// switch on the tag.
    pub(crate) fn bad_payload(message: impl Into<String>) -> Self {
        let mut fields = Object::new();
        fields.insert("_tag".into(), json!("BadRequest"));
        let data = json!({ "message": message.into(), "kind": "Payload" });
        Self {
            status: StatusCode::BAD_REQUEST,
            error: NamedError {
                name: "BadRequest".into(),
                data,
            },
            fields: Some(Box::new(fields)),
            fault: None,
        }
    }
    /// Creates an error for a feature of OpenCode that this program lacks, on purpose or for now (docs/compatibility.md
    /// says which).
    pub(crate) fn unsupported(what: &str) -> Self {
        Self {
            status: StatusCode::NOT_IMPLEMENTED,
            error: NamedError::new(
                "NotSupportedError",
                format!("{what} is not supported (see docs/compatibility.md)"),
            ),
            fields: None,
            fault: None,
        }
    }
    /// Creates an error with OpenCode's name for it.
    pub(crate) fn named(status: StatusCode, error: NamedError) -> Self {
        Self {
            status,
            error,
            fields: None,
            fault: None,
        }
    }
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            error: NamedError::new("Forbidden", message),
            fields: None,
            fault: None,
        }
    }
    /// Creates an internal error with its cause: OpenCode only names a line of its log.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            error: NamedError::new("UnknownError", message),
            fields: None,
            fault: None,
        }
    }
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            error: NamedError::new("NotFoundError", message),
            fields: None,
            fault: None,
        }
    }
    /// Creates an error with a tag and a field for its subject, as OpenCode's newer errors have.
    pub(crate) fn tagged(
        status: StatusCode,
        tag: &str,
        about: (&str, &str),
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        let mut fields = Object::new();
        fields.insert("_tag".into(), json!(tag));
        fields.insert(about.0.into(), json!(about.1));
        fields.insert("message".into(), json!(message));
        Self {
            status,
            error: NamedError::new(tag, message),
            fields: Some(Box::new(fields)),
            fault: None,
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let fault = Fault {
            code: error.code(),
            hint: error.hint(),
        };
        Self {
            fault: Some(Box::new(fault)),
            ..Self::of(&error)
        }
    }
}

impl ApiError {
    /// Converts an agent's error to OpenCode's form.
    fn of(error: &AgentError) -> Self {
        let status = match error {
            AgentError::NoSession(_) => return Self::missing(error.to_string()),
            AgentError::NoAgent { .. }
            | AgentError::NoCommand { .. }
            | AgentError::NothingToCompact(_)
            | AgentError::Model(_) => StatusCode::BAD_REQUEST,
            AgentError::NoMessage { .. } => return Self::missing(error.to_string()),
            AgentError::Budget(_) | AgentError::Refused(_) | AgentError::NotGranted(_) => {
                return Self::forbidden(error.to_string());
            }
            AgentError::Busy(id) | AgentError::Working(id) => {
                return Self::tagged(
                    StatusCode::CONFLICT,
                    "SessionBusyError",
                    ("sessionID", id),
                    error.to_string(),
                );
            }
            AgentError::Part(_) | AgentError::BadFormat(_) => StatusCode::BAD_REQUEST,
            AgentError::Conflict { .. } | AgentError::PluginCaused { .. } => StatusCode::CONFLICT,
            AgentError::RunsLater { .. } => StatusCode::FORBIDDEN,
            AgentError::WaitsForItself(_) | AgentError::Moved(_) => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            status,
            error: error.to_named(),
            fields: None,
            fault: None,
        }
    }
}

impl From<outrigger_store::StoreError> for ApiError {
    fn from(error: outrigger_store::StoreError) -> Self {
        AgentError::from(error).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!(self.error);
        if let (Some(body), Some(fields)) = (body.as_object_mut(), self.fields) {
            body.extend(*fields);
        }
        let mut response = (self.status, Json(body)).into_response();
        if let Some(fault) = self.fault {
            response.extensions_mut().insert(*fault);
        }
        response
    }
}

/// Answers every unknown route.
pub(crate) async fn not_found(uri: Uri) -> ApiError {
    ApiError::missing(format!(
        "{} is not a route of this version (see docs/compatibility.md)",
        uri.path()
    ))
}
