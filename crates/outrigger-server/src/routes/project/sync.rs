//! `/sync`: OpenCode's way to transfer sessions between workspaces. There are no workspaces here.

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

/// Does nothing without workspaces; clients call it at their start.
async fn start() -> Json<bool> {
    Json(true)
}

/// Returns events of other workspaces: none.
async fn history() -> Json<Vec<Value>> {
    Json(Vec::new())
}

async fn unsupported() -> ApiError {
    ApiError::unsupported("handing sessions between workspaces")
}
