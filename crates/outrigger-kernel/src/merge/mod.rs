//! One conversation, whichever agent speaks, live and stored (E1–E5).
//!
//! What an agent says becomes messages and parts of a session: our own agent writes them, those of others are made by
//! [`AgentParts`]. They are stored first. A [`Converter`] makes conversation messages of a stored part, of nothing else: start and
//! result of a tool ([`Form::Apart`]), or one message for both ([`Form::Merged`]). So there is one rule for live and stored:
//!
//! - **Place.** A message has a key, `MESSAGE/PART`; keys ascend in the order of the conversation. The merged message has the key of
//!   its start and takes its place.
//! - **Release.** Nothing is held back: a start is sent at once, whenever its result comes. No timer is needed, and none can
//!   make two readers see two conversations.
//!
//! [`Conversation`] says what an event changes; [`Transcript`] is what a client has that applies these changes.

mod agents;
mod changed;
mod convert;
mod follow;
mod pair;
mod patched;
mod processors;

pub use agents::{AgentPart, AgentParts};
pub use changed::name_changes;
pub use convert::{Author, Converter, Form, details};
pub use follow::{Conversation, Transcript};
pub use processors::{ToolProcessor, bundled};

/// The key of a plugin whose tool has the name of a bundled one.
pub(crate) const PLUGIN: &str = "plugin";
