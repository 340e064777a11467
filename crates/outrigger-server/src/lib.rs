//! The HTTP API over the agent, in the form of OpenCode's v1 API.
//!
//! One router serves everyone: plugins reach it in process ([`serve_plugins`]), without a port being open (A11). Routes that
//! are not here answer 404 with a typed body, never with silence. Listening on TCP is not here yet.

mod error;
mod experimental;
mod file;
mod in_process;
mod project;
mod pty;
mod reject;
mod routes;
mod session;
mod sync;
mod tui;
mod vcs;

use axum::Router;
use outrigger_agent::Agent;

pub use in_process::serve_plugins;
pub use pty::brings_ticket;

/// Every route, over this agent.
pub fn router(agent: Agent) -> Router {
    routes::general()
        .merge(session::routes())
        .merge(file::routes())
        .merge(vcs::routes())
        .merge(project::routes())
        .merge(pty::routes())
        .merge(tui::routes())
        .merge(experimental::routes())
        .merge(sync::routes())
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::not_found)
        .layer(axum::middleware::map_response(reject::typed))
        .with_state(agent)
}
