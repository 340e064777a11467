//! The tool runtime (the one way to run a tool) and the bundled tools.
//!
//! [`ToolRuntime::execute`] is the one way to run a tool (invariant 2): look up, validate, capabilities, hooks, validate again,
//! normalise, permission questions, bind to a provider ([`routes`]), run under a deadline and cancellation, output schema and limits,
//! hooks, record. A call accesses its session through the port [`ToolHost`], which the agent implements. [`builtin::register_all`]
//! registers the bundled tools; plugins and MCP servers register a [`FnTool`] each.
//!
//! This crate does not decide permissions (the host does), talk to models, or keep sessions.

pub mod answer;
pub mod builtin;
mod edits;
mod shell;

mod error;
mod expression;
mod files;
pub mod handed;
mod host;
mod ignored;
mod output;
pub mod routes;
mod runtime;
mod schema;
pub mod search;
mod tool;

pub use edits::patch::patched;
pub use error::ToolError;
pub use files::{nearby_instruction_files, relative};
pub use host::{
    AgentEntry, CancelFlag, DecideRead, Formatted, Grant, HookVerdict, Limits, NearbyInstruction,
    Outside, PermissionAsk, ReadRules, SampleAnswer, SampleRequest, SkillEntry, SubagentAnswer,
    SubagentRequest, ToolContext, ToolHost,
};
pub use runtime::{DEFECT, Executed, LineHost, Listener, Stage, ToolRuntime, with_context};
pub use shell::command_line::{ask_for_line, line_may_run};
pub use shell::running::read_some;
pub use tool::{FnTool, Tool};
