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
