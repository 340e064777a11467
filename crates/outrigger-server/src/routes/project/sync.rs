//! `/sync`: OpenCode's way to hand sessions from one workspace to another. There are no workspaces here.

use axum::routing::post;
use axum::{Json, Router};
use outrigger_agent::Agent;
use serde_json::Value;

use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/sync/start", post(start))
        .route("/sync/history", post(history))
        .route("/sync/replay", post(unsupported))
        .route("/sync/steal", post(unsupported))
}

/// With no workspace there is nothing to begin; clients ask at their start.
async fn start() -> Json<bool> {
    Json(true)
}

/// Events of other workspaces: none.
async fn history() -> Json<Vec<Value>> {
    Json(Vec::new())
}

async fn unsupported() -> ApiError {
    ApiError::unsupported("handing sessions between workspaces")
}
