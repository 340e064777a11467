//! JS plugin processes: one process of Bun or Node that runs OpenCode plugins, and the host's end of its channel.
//!
//! The crate implements the communication: [`JsRuntime::find`] looks for Bun and Node, [`JsProcess::start`] starts the
//! host script in its sandbox and waits for its hello, and the methods of [`JsProcess`] load plugins, run hooks and
//! tools, and send events. Requests of a plugin go to a [`HostHandler`]. `docs/plugin-protocol.md` describes the frames.
//!
//! It makes no decisions: `outrigger-plugins` decides which plugins share a process, when one is restarted or given up,
//! what a hook may change and what a timeout costs.
//!
//! Nothing here waits without a deadline, and a deadline covers write, run and read (invariant 5). This crate does not
//! kill a process that did not answer in time: its owner asks [`JsProcess::entered`] for the culprit, and drops it.

#![warn(clippy::indexing_slicing, clippy::string_slice)]

mod blame;
mod codec;
mod error;
mod fetch;
mod hooks;
mod host_handler;
mod output;
mod payload;
mod peer;
mod policy;
mod process;
mod runtime;
mod script;
mod sdk;

pub use codec::{Decoder, encode};
pub use error::{Closed, JsError};
pub use fetch::FetchBody;
pub use hooks::{HookCall, Sent, Transfer, Way};
pub use host_handler::{HostHandler, Refused};
pub use output::OutputLog;
pub use payload::exchange::ExchangeRoot;
pub use policy::default_policy;
pub use process::{JsProcess, StartOptions};
pub use runtime::{JsRuntime, Lookup, RuntimeKind};
pub use sdk::{SdkAnswer, SdkBody};
