//! `POST /session/{id}/summarize`: compaction on demand.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use outrigger_agent::{Agent, Compact, Origin, TurnRequest};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::provenance::Provenance;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::routes::session::turn::{Turn, TurnBody};

pub(crate) fn routes() -> Router<Agent> {
    Router::new().route("/session/{id}/summarize", post(summarize))
}

/// Returns `true` when the compaction turn has ended, as in OpenCode. An error is in the summary's message and was
/// published as `session.error`.
async fn summarize(
    State(agent): State<Agent>,
    turn: Turn<Summarize>,
) -> Result<Json<bool>, ApiError> {
    agent.run(turn.of(Origin::Program)).await?;
    Ok(Json(true))
}

/// `{providerID, modelID, auto?}`, checked by hand so that what is missing is named.
#[derive(Deserialize)]
#[serde(transparent)]
struct Summarize(Value);

impl TurnBody for Summarize {
    fn turn(self, session: &SessionId, author: Provenance) -> Result<TurnRequest, ApiError> {
        let Self(body) = self;
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
        Ok(TurnRequest::compact(session, compact))
    }
}
