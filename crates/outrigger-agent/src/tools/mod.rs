//! The tools of an agent and the services behind them.

pub(crate) mod host;
pub(crate) mod lsp;
pub(crate) mod mcp;
pub(crate) mod outputs;
pub(crate) mod remote_call;
pub(crate) mod terminals;
pub(crate) mod tool_catalog;
pub(crate) mod vcs;
