//! What a model reads: the system prompt, the text of commands, the messages of a conversation, and what a compaction
//! makes of them. Texts and values in, texts and values out: it stores nothing and asks nobody.

pub mod command;
pub mod compaction;
pub mod history;
pub mod mentions;
pub mod parts;
pub mod system;
pub mod template;
#[cfg(test)]
mod testing;
