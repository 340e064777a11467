//! Our own HTTP API, `/outrigger/v1`: conversations of all projects, live and stored alike (E1–E6).
//!
//! [`types`] are what the server writes and our clients in Rust read; [`forms`] say the same as a schema, of which the OpenAPI document,
//! `docs/api.schema.json` and `web/src/api.ts` are made.

pub mod forms;
mod types;
mod written;

pub use types::{
    Channel, Conversation, ConversationPage, Entry, EntryPage, Shortened, Span, SpanKind,
    SpanState, Status, StreamItem, Trace, Turn, Waiting,
};
pub use written::{schema, typescript};
