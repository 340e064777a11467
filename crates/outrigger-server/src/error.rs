//! Errors as the API answers them: `{name, data: {message, …}}` with a fitting status.

use axum::Json;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use outrigger_agent::AgentError;
use outrigger_protocol::message::NamedError;
use serde_json::json;

/// What a handler fails with.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: NamedError,
}

impl ApiError {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: NamedError::new("BadRequest", message),
        }
    }
    /// A refusal under the reference's name, with what it says.
    pub(crate) fn named(name: &str, data: serde_json::Value) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: NamedError {
                name: name.to_owned(),
                data,
            },
        }
    }
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            error: NamedError::new("NotFoundError", message),
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let status = match &error {
            AgentError::NoSession(_) => return Self::missing(error.to_string()),
            AgentError::NoAgent { .. } | AgentError::NoCommand { .. } | AgentError::Model(_) => {
                StatusCode::BAD_REQUEST
            }
            AgentError::Busy(_) | AgentError::WaitsForItself(_) => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self {
            status,
            error: error.to_named(),
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
        (self.status, Json(json!(self.error))).into_response()
    }
}

/// The answer to every route that is not there.
pub(crate) async fn not_found(uri: Uri) -> ApiError {
    ApiError::missing(format!(
        "{} is not a route of this version (see docs/compatibility.md)",
        uri.path()
    ))
}
