//! Language servers and formatters: `/lsp`, `/formatter`, `/find/symbol`.

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use outrigger_agent::Agent;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/lsp", get(status))
        .route("/formatter", get(formatters))
        .route("/find/symbol", get(symbols))
}

async fn status(State(agent): State<Agent>) -> Json<Value> {
    Json(json!(agent.lsp()))
}

async fn formatters(State(agent): State<Agent>) -> Json<Value> {
    Json(json!(agent.formatters()))
}

#[derive(Deserialize)]
struct Symbols {
    query: String,
}

async fn symbols(State(agent): State<Agent>, Query(query): Query<Symbols>) -> Json<Value> {
    Json(json!(agent.symbols(&query.query).await))
}
