//! One conversation, whichever agent speaks, live and stored (E1–E5).
//!
//! The output of an agent becomes messages and parts of a session: Outrigger's own agent writes them, those of other agents are
//! made by [`AgentParts`]. They are stored first. A [`Converter`] derives conversation messages from stored parts only: start and
//! result of a tool ([`Form::Apart`]), or one message for both ([`Form::Merged`]). So one rule covers live and stored
//! conversations:
//!
//! - **Place.** A message has a key, `MESSAGE/PART`; keys ascend in the order of the conversation. The merged message has the key
//!   of its start and replaces it.
//! - **Release.** Nothing is held back: a start is sent at once, whenever its result comes. No timer is needed, and no two
//!   readers can see different conversations.
//!
//! [`Conversation`] returns the changes of an event; [`Transcript`] is the state of a client that applies them.

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

/// Key that marks a plugin's tool with the name of a bundled one.
pub(crate) const PLUGIN: &str = "plugin";
