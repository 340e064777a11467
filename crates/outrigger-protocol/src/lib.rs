//! Wire types of Outrigger: what is stored, sent to a client, or sent to a plugin process.
//!
//! This crate defines *shapes*: sessions, messages and parts, bus events, hook payloads, tool calls, model requests,
//! plugin RPC frames and log records. It makes no decisions (see `outrigger-kernel`) and does no I/O.
//!
//! Invariant 8: what is stored or sent is a type of this crate and nowhere else, except for the input and output of
//! hook calls, which are defined with their points in `outrigger-kernel`. Shapes follow OpenCode (`opencode` 1.18.33)
//! key by key, including camel case with a capital `ID`, because published plugins read them. Types that plugins may
//! extend have an `extra` map, so that a key unknown to the host survives a round trip.

pub mod buffer;
mod conversation;
pub mod diagnose;
pub mod id;
pub mod keys;
pub mod model;
mod plugin;
mod records;
pub mod settings;
pub mod startup;
mod tagged;
mod tools;

/// A JSON object with its keys in the order they were written.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Milliseconds since the Unix epoch, as OpenCode writes every time.
pub type Millis = u64;
pub use conversation::{compaction, event, message, origin, permission, question, session};
pub use plugin::{auth, custom_points, history, hook, login, manifest, rpc, transfer};
pub use records::{audit, log, provenance, turn};
pub use tools::{canonical, descriptor, invoke, merged, permission_names, task_output, tool};
