//! `/outrigger/plugin`: our own route, for what the reference does not have: how plugins are and what they cost.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use outrigger_agent::Agent;
use serde_json::{Map, Value, json};

pub(crate) fn routes() -> Router<Agent> {
    Router::new().route("/outrigger/plugin", get(plugins))
}

/// Every plugin with its stage, breakers and what its process uses, the cost of each hook (A1, A8), and the feature flags
/// (A12).
async fn plugins(State(agent): State<Agent>) -> Json<Value> {
    let flags: Map<String, Value> = agent
        .flags()
        .into_iter()
        .map(|(name, on, origin)| (name, json!({ "on": on, "from": origin.to_string() })))
        .collect();
    Json(json!({ "plugins": agent.plugins(), "perf": agent.plugin_perf(), "flags": flags }))
}
