//! The HTTP API over the agent, in the form of OpenCode's v1 API.
//!
//! One router serves everyone: plugins ([`serve_plugins`]) and the person at this program ([`LocalClient`]) reach it in process,
//! without a port being open (A11), clients over TCP ([`listen`]). A server holds one agent for each folder ([`Hub`]). Routes that are not here answer 404 with a typed
//! body, never with silence.

mod author;
mod backlog;
mod client;
mod dispatch;
mod doc;
mod error;
mod experimental;
mod file;
#[cfg(test)]
mod file_routes;
mod guard;
mod hub;
mod in_process;
mod listen;
mod lsp;
mod mcp;
mod own_sessions;
mod page;
mod permission;
mod plugin;
mod plugin_routes;
mod project;
mod provider;
mod pty;
mod question;
mod reject;
mod renew;
mod routes;
mod scope;
mod session;
mod session_edit;
mod settings;
mod stream;
mod summarize;
mod sync;
mod tui;
mod v2;
mod v2_session;
mod vcs;
mod wider;
mod workspace;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use outrigger_agent::Agent;

pub use dispatch::serve_router;
pub use doc::openapi;
pub use guard::{Guard, Login};
pub use hub::{Hub, MakeBoot};
pub use in_process::{LocalClient, Refusal, call, serve_plugins};
pub use listen::announced::{Announced, announce, is_announced};
pub use listen::password::{keep_password, kept_password, password_file};
pub use listen::{Listening, USUAL_PORT, listen};
pub use pty::brings_ticket;

/// Every route, over this agent.
pub fn router(agent: Agent) -> Router {
    routes::general()
        .merge(session::routes())
        .merge(mcp::routes())
        .merge(lsp::routes())
        .merge(provider::routes(&agent))
        .merge(session_edit::routes())
        .merge(permission::routes())
        .merge(question::routes())
        .merge(file::routes())
        .merge(vcs::routes())
        .merge(plugin::routes())
        .merge(client::routes())
        .merge(project::routes())
        .merge(pty::routes())
        .merge(tui::routes())
        .merge(experimental::routes())
        .merge(sync::routes())
        .merge(v2::routes())
        .merge(v2_session::routes())
        .merge(summarize::routes())
        .merge(stream::routes())
        .route_layer(axum::middleware::from_fn(plugin_routes::listed))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::not_found)
        .layer(axum::middleware::from_fn(workspace::none))
        .layer(axum::middleware::map_response(reject::typed))
        .layer(DefaultBodyLimit::max(dispatch::MOST_BYTES))
        .with_state(agent)
}
