//! Conversations of the store as files.
//!
//! [`select`] reads sessions, [`Redaction`] takes out of them what is not for others, [`Document`] is the form from which JSON, Markdown
//! and HTML are made; OpenCode's own form is made from the stored messages. What a conversation holds is data in each of them: it cannot
//! become markup, script or what a terminal obeys.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod document;
mod error;
mod html;
mod markdown;
mod opencode;
mod redact;
mod select;

pub use document::{Document, Exported, FORMAT, VERSION};
pub use error::ExportError;
pub use html::{Page, html};
pub use markdown::markdown;
pub use opencode::{OpenCodeSession, opencode};
pub use redact::{LEFT_OUT, Redaction};
pub use select::{Stored, select};
