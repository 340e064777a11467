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
pub use routes::router;
