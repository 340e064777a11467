//! What a prompt becomes: its parts, mentions, commands, and the system prompt.

pub(crate) mod attachment;
pub(crate) mod choice;
pub(crate) mod command;
pub(crate) mod command_info;
pub(crate) mod command_prompt;
pub(crate) mod mentions;
pub(crate) mod message_decode;
pub(crate) mod parts;
pub(crate) mod request;
pub(crate) mod submit;
pub(crate) mod system;
pub(crate) mod template_shell;
pub(crate) mod title;
pub(crate) mod tool_overrides;
