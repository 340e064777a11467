//! What is done with hook points and bus events that plugins declare (B8): the calls and events of a process, and the list.
//! What a declaration is stands in `outrigger_plugin_package::custom_points`.

mod gateway;
mod links;
mod list;

pub(crate) use gateway::PointGateway;
pub(crate) use links::{Link, Links, Opened};
pub use list::{EventRow, PointRow};
