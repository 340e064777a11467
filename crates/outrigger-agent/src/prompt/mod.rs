//! Building a prompt: its parts, mentions, commands, and the system prompt.

pub(crate) mod as_call;
pub(crate) mod attachment;
pub(crate) mod choice;
pub(crate) mod chosen_models;
pub(crate) mod command_prompt;
pub(crate) mod guards;
pub(crate) mod instructions;
pub(crate) mod mentions;
pub(crate) mod parts;
pub(crate) mod submit;
pub(crate) mod template_shell;
pub(crate) mod title;
pub(crate) mod tool_overrides;
