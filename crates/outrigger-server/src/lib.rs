//! The HTTP API over the agent, in the form of OpenCode's v1 API.
//!
//! One router serves everyone: plugins reach it in process ([`serve_plugins`]), without a port being open (A11), clients over
//! TCP ([`listen`]). A server holds one agent for each folder ([`Hub`]). Routes that are not here answer 404 with a typed
//! body, never with silence.

mod dispatch;
mod error;
mod hub;
mod in_process;
mod listen;
mod routes;
mod session;
mod stream;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use outrigger_agent::Agent;

pub use dispatch::serve_router;
pub use hub::{Hub, MakeBoot};
pub use listen::{Listening, USUAL_PORT, listen};
pub use in_process::serve_plugins;

/// Every route, over this agent.
pub fn router(agent: Agent) -> Router {
    routes::general()
        .merge(session::routes())
        .fallback(error::not_found)
        .layer(DefaultBodyLimit::max(dispatch::MOST_BYTES))
        .with_state(agent)
}
