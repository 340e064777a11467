//! Custom hook points and bus events that plugins declare (B8): the calls and events of a process. Declarations are
//! in `outrigger_plugin_package::custom_points`.

pub mod gateway;
pub mod links;
