//! What is done with hook points and bus events that plugins declare (B8): the calls and events of a process, and the list.
//! What a declaration is stands in `outrigger_plugin_package::custom_points`.

pub(crate) mod gateway;
pub(crate) mod links;
pub(crate) mod list;
