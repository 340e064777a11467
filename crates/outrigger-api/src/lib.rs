//! Our own HTTP API, `/outrigger/v1`: conversations of all projects, live and stored alike (E1–E6).
//!
//! [`types`] are what the server writes and our clients in Rust read. [`forms`] define the same types as a schema, from which the OpenAPI
//! document, `docs/api.schema.json` and `web/src/api.ts` are generated. [`permission`] defines what users see of a permission question in
//! every client.

pub mod forms;
pub mod permission;
mod types;
mod written;

pub use types::{
    Channel, Conversation, ConversationPage, Entry, EntryPage, SearchHit, SearchPage, Shortened,
    Span, SpanKind, SpanState, Status, StreamItem, Trace, Turn, Waiting,
};
pub use written::{schema, typescript};
