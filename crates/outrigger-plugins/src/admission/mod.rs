//! Decides which of the configured plugins may run, and with which runtime.

pub(crate) mod admit;
pub(crate) mod command_hooks;
pub(crate) mod hosted;
pub(crate) mod runtime_selection;
