//! `/outrigger/v1`: conversations of all projects, for our own clients (docs/api.md). The responses are built in `outrigger-conversation`.

mod entries;
mod history;
mod source;
mod stream;
mod waiting;

use axum::Router;
use axum::routing::{get, post};

pub(crate) use source::{Source, feed_of_agent, feed_of_hub};

pub(crate) fn routes() -> Router<Source> {
    Router::new()
        .route("/outrigger/v1/conversation", get(entries::list))
        .route("/outrigger/v1/conversation/{id}", get(entries::one))
        .route(
            "/outrigger/v1/conversation/{id}/message",
            get(entries::page),
        )
        .route(
            "/outrigger/v1/conversation/{id}/content/{ref}",
            get(entries::content),
        )
        .route(
            "/outrigger/v1/conversation/{id}/stream",
            get(stream::of_one),
        )
        .route("/outrigger/v1/search", get(entries::search))
        .route("/outrigger/v1/stream", get(stream::of_all))
        .route("/outrigger/v1/waiting", get(waiting::list))
        .route("/outrigger/v1/permission/{id}/reply", post(waiting::reply))
        .route("/outrigger/v1/question/{id}/reply", post(waiting::answer))
        .route("/outrigger/v1/question/{id}/reject", post(waiting::reject))
        .route("/outrigger/v1/conversation/{id}/turn", get(history::turns))
        .route(
            "/outrigger/v1/conversation/{id}/turn/{turn}",
            get(history::trace),
        )
        .route("/outrigger/v1/conversation/{id}/diff", get(history::diffs))
        .route("/outrigger/v1/audit", get(history::audit))
        .route("/outrigger/v1/audit/verify", get(history::verify))
}
