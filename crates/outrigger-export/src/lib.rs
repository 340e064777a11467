//! Exports stored conversations to files.
//!
//! [`select`] reads sessions, [`Redaction`] removes what is not for others, [`Document`] is the form from which JSON, Markdown and HTML
//! are created; OpenCode's own form is created from the stored messages. The content of a conversation is data in each format: it cannot
//! become markup, script or a control sequence.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod code_spans;
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
