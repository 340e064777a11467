//! Client of MCP servers: starts them, lists their tools, calls them, restarts them.
//!
//! [`McpServers::start`] starts every configured server in the background; [`McpServers::ready`] waits for them, each no longer than its
//! timeout; [`McpServers::tools`] lists their tools. A server that fails, hangs, exits or floods is listed with its cause by
//! [`McpServers::status`] and affects nothing else. [`content`] parses the result of a call.
//!
//! Resources, prompts and instructions are requested on demand ([`McpServers::resources`] and the like). The caller of a tool answers
//! requests that its server makes in the meantime ([`Answering`]). Remote servers can be logged in to with OAuth
//! ([`McpServers::authenticate`]); the tokens are in one file.
//!
//! Permissions, hooks and output limits are the tool runtime's, not this crate's.
//!
//! The protocol is implemented here, because hooks must get the results of calls as the server wrote them, lines that are not messages must
//! be tolerated, and endless ones must not be kept, which a typed client library does not allow.

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
