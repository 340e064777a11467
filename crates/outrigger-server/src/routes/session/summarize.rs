//! `POST /session/{id}/summarize`: compaction on demand.

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use outrigger_agent::{Agent, Compact, TurnRequest};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use serde_json::Value;

use crate::access::author::Author;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new().route("/session/{id}/summarize", post(summarize))
}

/// Returns `true` when the compaction turn has ended, as in OpenCode. An error is in the summary's message and was
/// published as `session.error`.
async fn summarize(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Author(author): Author,
    Json(body): Json<Value>,
) -> Result<Json<bool>, ApiError> {
    let text = |key: &str| {
        let value = body.get(key).and_then(Value::as_str).unwrap_or_default();
        if value.is_empty() {
            return Err(ApiError::bad_payload(format!(
                "summarize needs `{key}`, a text: {{providerID, modelID, auto?}}"
            )));
        }
        Ok(value.to_owned())
    };
    let auto = match body.get("auto") {
        None => false,
        Some(Value::Bool(auto)) => *auto,
        Some(_) => return Err(ApiError::bad_payload("`auto` is either true or false")),
    };
    let compact = Compact {
        model: Some(ModelRef {
            provider_id: text("providerID")?,
            model_id: text("modelID")?,
            variant: None,
        }),
        auto,
        instructions: None,
        provenance: author,
    };
    agent.session(&id)?;
    agent.may_ask(&compact.provenance, Some(&id), compact.model.as_ref(), &[])?;
    agent.run(TurnRequest::compact(&id, compact)).await?;
    Ok(Json(true))
}
