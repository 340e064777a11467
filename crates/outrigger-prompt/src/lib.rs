//! What a model reads: the system prompt, the text of commands, the messages of a conversation, and the summaries of
//! a compaction. Pure functions on texts and values: nothing is stored.

pub mod command;
pub mod compaction;
pub mod filled;
pub mod history;
pub mod mentions;
pub mod parts;
pub mod printed;
pub mod system;
pub mod template;
#[cfg(test)]
mod testing;
