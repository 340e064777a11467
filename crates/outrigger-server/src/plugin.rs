//! `/outrigger/plugin`: our own route, for what the reference does not have: how plugins are and what they cost.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use outrigger_agent::Agent;
use serde_json::{Value, json};

pub(crate) fn routes() -> Router<Agent> {
    Router::new().route("/outrigger/plugin", get(plugins))
}

/// Every plugin with its stage, breakers and what its process uses, and the cost of each hook (A1, A8).
async fn plugins(State(agent): State<Agent>) -> Json<Value> {
    Json(json!({ "plugins": agent.plugins(), "perf": agent.plugin_perf() }))
}
