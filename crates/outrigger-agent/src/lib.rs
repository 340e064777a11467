//! Sessions: the agent carries out what the kernel decides.
//!
//! [`Agent::boot`] reads the configuration, loads plugins and opens the store; [`Agent::prompt`] runs a turn. The turn's
//! decisions are the kernel's (`outrigger_kernel::turn`); this crate calls models, hooks and tools, stores every step
//! before it acts on it, and tells the bus. It knows nothing of HTTP.

pub mod agents;
mod ask;
mod boot;
mod bridge;
mod bus;
mod changes;
mod command;
mod draft;
mod drive;
mod edit;
mod error;
mod fork;
mod host;
pub mod ids;
mod inner;
mod mcp;
mod model_task;
mod observe;
mod offer;
mod parts;
mod plugin_tools;
mod project;
mod prompt;
mod question;
mod queue;
mod replay;
mod request;
mod revert;
mod session;
mod shell;
mod snapshot;
mod step_events;
mod system;
mod title;
mod track;
mod turns;

pub use agents::AgentInfo;
pub use ask::Answering;
pub use boot::{Adjust, Boot, Folders, setup_plugins};
pub use bus::Bus;
pub use error::AgentError;
pub use inner::{Agent, CommandInfo, SdkService};
pub use mcp::McpStatus;
pub use project::Place;
pub use prompt::Attachment;
pub use replay::{Replayed, replay};
pub use session::{NewSession, delete_session};
pub use shell::ShellInput;
pub use snapshot::SnapshotError;
