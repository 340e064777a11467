//! Client of language servers: starts them, notifies them of changed files, collects their diagnostics.
//!
//! [`Lsp`] is the entry point. The protocol is LSP 3.17, as far as needed for diagnostics, workspace symbols and [`Lsp::ask`].

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod ask;
mod client;
mod config;
mod content;
mod documents;
mod error;
mod frames;
mod language;
mod lsp;
mod process;
mod programs;
mod root;
mod servers;
mod uri;

pub use config::{built_in, texts_at, variables_at};
pub use content::MaySeeFn;
pub use error::LspError;
pub use lsp::{Limits, Lsp, Options, Status};
pub use programs::{Programs, RefusalFn};
pub use servers::TOOL_CHAINS;
