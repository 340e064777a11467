//! The HTTP API over the agent, in the form of OpenCode's v1 API.
//!
//! One router serves everyone: plugins reach it in process ([`serve_plugins`]), without a port being open (A11). Routes that
//! are not here answer 404 with a typed body, never with silence. Listening on TCP is not here yet.

mod error;
mod experimental;
mod file;
mod in_process;
mod permission;
mod project;
mod provider;
mod question;
mod reject;
mod routes;
mod session;
mod session_edit;
mod sync;
mod tui;
mod vcs;
mod v2;

use axum::Router;
use outrigger_agent::Agent;

pub use in_process::serve_plugins;

/// Every route, over this agent.
pub fn router(agent: Agent) -> Router {
    routes::general()
        .merge(session::routes())
        .merge(provider::routes())
        .merge(session_edit::routes())
        .merge(permission::routes())
        .merge(question::routes())
        .merge(file::routes())
        .merge(vcs::routes())
        .merge(project::routes())
        .merge(tui::routes())
        .merge(experimental::routes())
        .merge(sync::routes())
        .merge(v2::routes())
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::not_found)
        .layer(axum::middleware::map_response(reject::typed))
        .with_state(agent)
}
