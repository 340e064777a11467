//! Wire types of Outrigger: what is stored, sent to a client, or sent to a plugin process.
//!
//! This crate is for *shapes*: sessions, messages and parts, bus events, hook payloads, tool calls, model requests,
//! plugin RPC frames and log records. It is not for decisions (see `outrigger-kernel`) and it does no I/O.
//!
//! Invariant 8: what is stored or sent is a type of this crate and nowhere else, but for what is in the input and the output of a
//! hook call, which stands with its point in `outrigger-kernel`. Shapes follow the reference
//! (`opencode` 1.18.33) key by key, including camel case with a capital `ID`, because published plugins read them.
//! Types that plugins may extend carry an `extra` map, so a key that the host does not know survives a round trip.

pub mod audit;
pub mod auth;
pub mod canonical;
pub mod compaction;
pub mod descriptor;
pub mod event;

pub mod history;
pub mod hook;
pub mod id;
pub mod invoke;
pub mod log;
pub mod login;
pub mod manifest;
pub mod merged;
pub mod message;
pub mod model;
pub mod own;
pub mod permission;
pub mod provenance;
pub mod question;
pub mod rpc;
pub mod session;
pub mod settings;
pub mod startup;
pub mod tally;
pub mod text;
pub mod tool;
pub mod transfer;
pub mod turn;

/// A JSON object with its keys in the order they were written.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Milliseconds since the Unix epoch, as the reference writes every time.
pub type Millis = u64;
