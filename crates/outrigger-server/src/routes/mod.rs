//! The routes, by subject.

pub(crate) mod conversation;
pub(crate) mod cursor;
pub(crate) mod experimental;
pub(crate) mod general;
pub(crate) mod lsp;
pub(crate) mod mcp;
pub(crate) mod page;
pub(crate) mod plugin;
pub(crate) mod project;
pub(crate) mod provider;
pub(crate) mod pty;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod tui;
pub(crate) mod v2;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use outrigger_agent::Agent;

/// Returns the router with every route, over this agent.
pub fn router(agent: Agent) -> Router {
    let feed = conversation::feed_of_agent(&agent);
    let conversations = conversation::Source::Agent(agent.clone(), feed);
    general::general()
        .merge(session::sessions::routes())
        .merge(mcp::routes())
        .merge(lsp::routes())
        .merge(provider::routes(&agent))
        .merge(session::edit::routes())
        .merge(session::permission::routes())
        .merge(session::question::routes())
        .merge(project::file::routes())
        .merge(project::vcs::routes())
        .merge(plugin::routes())
        .merge(crate::hosting::client::routes())
        .merge(project::projects::routes())
        .merge(pty::routes())
        .merge(tui::routes())
        .merge(experimental::routes())
        .merge(project::sync::routes())
        .merge(v2::catalog::routes())
        .merge(v2::files::routes())
        .merge(v2::session::routes())
        .merge(session::summarize::routes())
        .merge(crate::events::stream::routes())
        .merge(conversation::routes().with_state(conversations))
        .route_layer(axum::middleware::from_fn(
            crate::access::plugin_routes::listed,
        ))
        .fallback(crate::error::not_found)
        .method_not_allowed_fallback(crate::error::not_found)
        .layer(axum::middleware::from_fn(project::workspace::none))
        .layer(axum::middleware::map_response(crate::reject::typed))
        .layer(DefaultBodyLimit::max(crate::request::MAX_BYTES))
        .with_state(agent)
}
