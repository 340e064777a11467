//! `GET /api/fs/find`: the files that OpenCode's terminal interface offers after `@`.

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_tools::search::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalog::listed;
use crate::error::{ApiError, JsonResult};
use crate::routes::project::file::{MAX_NAMES, NodeKind, find_names};

/// Default number of entries.
const ENTRIES: usize = 100;

pub(crate) fn routes() -> Router<Agent> {
    Router::new().route("/api/fs/find", get(find))
}

#[derive(Deserialize)]
struct Names {
    query: String,
    #[serde(rename = "type")]
    kind: Option<NodeKind>,
    limit: Option<usize>,
}

/// Returns paths in the served folder, best first. Larger limits are capped at ours, as in OpenCode.
async fn find(State(agent): State<Agent>, Query(names): Query<Names>) -> JsonResult<Value> {
    let limit = names.limit.unwrap_or(ENTRIES).min(MAX_NAMES);
    if limit == 0 {
        return Err(ApiError::bad_request("limit has to be greater than 0"));
    }
    let found = find_names(
        &agent,
        names.query,
        names.kind.map_or(Kind::Any, Kind::from),
        limit,
    )
    .await?;
    let entries = found.into_iter().map(|path| {
        let kind = if path.ends_with('/') {
            "directory"
        } else {
            "file"
        };
        json!({ "path": path, "type": kind })
    });
    let Json(answer) = listed(&agent, entries.collect());
    Ok(Json(answer))
}
