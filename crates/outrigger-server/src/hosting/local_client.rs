//! The router's callers in this process that act as the user: the user of this program, and its connectors. Neither needs a
//! port.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use outrigger_agent::Agent;
use outrigger_protocol::event::BusEvent;
use serde_json::Value;
use tokio::sync::broadcast;
use tower::ServiceExt as _;

use crate::access::marks::LocalUser;
use crate::error::Fault;
use crate::hosting::hub::Hub;

/// Maximum bytes of a response to a connector.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The client of the user of this program: an agent's routes without a connection. Cheap to clone.
#[derive(Clone)]
pub struct LocalClient {
    pub(super) router: Router,
    pub(super) agent: Agent,
}

/// A failed request.
#[derive(Debug)]
pub struct RequestError {
    /// The stable code of the error, if it has one.
    pub code: Option<&'static str>,
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LocalClient {
    /// Returns the body of the response. A turn that it started is cancelled if the future is dropped.
    ///
    /// # Errors
    /// The error of the route.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Bytes, RequestError> {
        let refusal = |message: String| RequestError {
            code: None,
            message,
            hint: None,
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .extension(LocalUser)
            .body(body.map_or_else(Body::empty, Body::from))
            .map_err(|error| refusal(error.to_string()))?;
        let answer = self
            .router
            .clone()
            .oneshot(request)
            .await
            .unwrap_or_else(|never| match never {});
        let status = answer.status();
        let fault = answer.extensions().get::<Fault>().cloned();
        let body = answer
            .into_body()
            .collect()
            .await
            .map_err(|error| refusal(error.to_string()))?
            .to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(RequestError {
            code: fault.as_ref().map(|it| it.code),
            message: message(&serde_json::from_slice(&body).unwrap_or_default())
                .unwrap_or_else(|| status.to_string()),
            hint: fault.and_then(|it| it.hint),
        })
    }

    /// Subscribes to what `GET /event` publishes, before it is serialized.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.agent.listen()
    }
}

/// Returns the message of an error.
fn message(error: &Value) -> Option<String> {
    error
        .pointer("/data/message")
        .or_else(|| error.get("message"))
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// Calls a route of a hub's agents in process, as the user: for connectors of this program, never for plugins.
///
/// # Errors
/// The status of a refusal with its message, or why the response is incomplete.
pub async fn call(
    hub: Hub,
    method: &'static str,
    path: String,
    body: Option<Value>,
) -> Result<Value, (Option<u16>, String)> {
    let none = |why: String| (None, why);
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| none(error.to_string()))?;
    let answer = crate::serve_router(hub)
        .oneshot(request)
        .await
        .unwrap_or_else(|never| match never {});
    let status = answer.status();
    let bytes = http_body_util::Limited::new(answer.into_body(), MAX_BYTES)
        .collect()
        .await
        .map_err(|error| none(error.to_string()))?
        .to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() {
        return Ok(value);
    }
    let why = message(&value).unwrap_or_else(|| status.to_string());
    Err((Some(status.as_u16()), why))
}
