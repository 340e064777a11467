//! Client of MCP servers: starts them, lists their tools, calls them, starts them again.
//!
//! [`McpServers::start`] starts every configured server in the background; [`McpServers::ready`] waits for them, each no longer than its
//! timeout; [`McpServers::tools`] is what there is to call. A server that fails, hangs, exits or floods is listed with its cause by
//! [`McpServers::status`] and costs nothing else. [`content`] reads the result of a call.
//!
//! Resources, prompts and instructions are asked of the servers when somebody wants them ([`McpServers::resources`] and the like). What a
//! server requests while a call of it runs, the caller answers ([`Answering`]). Remote servers that want a login get one by OAuth
//! ([`McpServers::authenticate`]); its tokens are in one file.
//!
//! What this crate is not for: permissions, hooks, output limits (the tool runtime has them).
//!
//! The protocol is spoken by code of our own: what a call answers must reach hooks as the server wrote it, lines that are not messages must
//! be borne and endless ones must not be kept, which a typed client library does not allow.

pub mod content;
mod transport;

mod catalog;
mod config;
mod elicitation;
mod error;
mod launch;
mod link;
mod logins;
mod name;
mod oauth;
mod requests;
mod secret;
mod server;
mod servers;
mod wire;

pub use catalog::{Instructions, Listed};
pub use config::{ServerConfig, Transport};
pub use elicitation::{Elicitation, Field, FieldKind};
pub use error::McpError;
pub use launch::{Launch, LaunchRefusal, LaunchRequest, Launcher, Placement};
pub use logins::AuthStart;
pub use name::{sanitize, tool_name};
pub use oauth::{AuthState, IdentityProvider, LoginSettings, OAuthConfig, TokenStore};
pub use requests::{Answering, Elicited, Nobody};
pub use server::{ServerTool, State, Status};
pub use servers::{McpServers, Options};
