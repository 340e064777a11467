//! The HTTP API over the agent, in the form of OpenCode's v1 API.
//!
//! One router serves all clients: plugins ([`serve_plugins`]) and the user of this program ([`LocalClient`]) use it in process, without an
//! open port (A11), other clients over TCP ([`listen`]). A server holds one agent for each folder ([`Hub`]). Unknown routes are answered
//! with 404 and a typed body.

mod access;
mod doc;
mod error;
mod events;
mod hosting;
mod listen;
mod reject;
mod request;
mod routes;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use outrigger_agent::Agent;

pub use access::guard::{Guard, Login, brings_ticket};
pub use access::page_session::PageSession;
pub use doc::openapi;
pub use hosting::dispatch::serve_router;
pub use hosting::hub::{Hub, MakeBoot};
pub use hosting::local_client::{LocalClient, RequestError, call};
pub use hosting::sdk_service::serve_plugins;
pub use listen::password::{keep_password, kept_password, password_file};
pub use listen::port_registry::{Announced, announce, is_announced};
pub use listen::{Listening, USUAL_PORT, listen};
pub use routes::page::PAGE;

/// Returns every route, over this agent.
pub fn router(agent: Agent) -> Router {
    let feed = routes::conversation::feed_of_agent(&agent);
    let conversations = routes::conversation::Source::Agent(agent.clone(), feed);
    routes::general::general()
        .merge(routes::session::sessions::routes())
        .merge(routes::mcp::routes())
        .merge(routes::lsp::routes())
        .merge(routes::provider::routes(&agent))
        .merge(routes::session::edit::routes())
        .merge(routes::session::permission::routes())
        .merge(routes::session::question::routes())
        .merge(routes::project::file::routes())
        .merge(routes::project::vcs::routes())
        .merge(routes::plugin::routes())
        .merge(hosting::client::routes())
        .merge(routes::project::projects::routes())
        .merge(routes::pty::routes())
        .merge(routes::tui::routes())
        .merge(routes::experimental::routes())
        .merge(routes::project::sync::routes())
        .merge(routes::v2::catalog::routes())
        .merge(routes::v2::files::routes())
        .merge(routes::v2::session::routes())
        .merge(routes::session::summarize::routes())
        .merge(events::stream::routes())
        .merge(routes::conversation::routes().with_state(conversations))
        .route_layer(axum::middleware::from_fn(access::plugin_routes::listed))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::not_found)
        .layer(axum::middleware::from_fn(routes::project::workspace::none))
        .layer(axum::middleware::map_response(reject::typed))
        .layer(DefaultBodyLimit::max(request::MAX_BYTES))
        .with_state(agent)
}
