//! The bridge (C17): executes `invoke` frames (read, write, edit, exec) of a remote controller, over a WebSocket; and
//! [`Remote`], the connector through which our own agent uses a bridge on another machine (C11).
//!
//! A bridge decides nothing: the controller decides what is done, and the person who started the bridge what may be
//! done. The rules that no hook, plugin or controller can change (C9, 1 to 5 and 8) are in [`Gate`], [`layers`], and
//! the limits of [`Options`].
//!
//! What this crate is not for: running anything itself. [`ToolExecutor`] does, which the agent implements over the tool runtime.

mod acceptor;
mod commands;
mod connection;
mod frame;
mod gate;
pub mod layers;
mod remote;
mod server;

pub use acceptor::{Acceptor, Connection, ConnectionHandle};
pub use commands::{CommandRule, Commands};
pub use gate::Gate;
pub use layers::{Call, Layer, Params};
pub use remote::{Remote, RemoteError};
pub use server::{Bridge, Options};

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::audit::AuditRecord;
use outrigger_protocol::tool::ToolOutput;
use outrigger_protocol::turn::HookPayload;
use outrigger_tools::CancelFlag;

/// Why a call was refused or failed: a stable code, and a message for the controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BridgeError {
    /// Stable code: `bridge.` and what it was, or the code of a tool's error.
    pub code: String,
    /// In words.
    pub message: String,
    /// What a call had printed before it was stopped.
    pub output: Option<String>,
}

impl BridgeError {
    /// A refusal without output.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            output: None,
        }
    }
}

/// Executes calls, and is notified of them.
pub trait ToolExecutor: Send + Sync {
    /// Executes a call. When its deadline passes, it is cancelled or the controller disconnects, the future is dropped:
    /// whatever it started ends with it.
    fn execute<'a>(
        &'a self,
        call: &'a Call,
        cancel: CancelFlag,
    ) -> BoxFuture<'a, Result<ToolOutput, BridgeError>>;
    /// Notifies the plugins of a point, for a call of that connection.
    fn tell(&self, connection: u64, point: HookPoint, payload: HookPayload);
    /// Writes a record into the audit.
    fn audit(&self, record: AuditRecord);
}

/// The executing side, shared by all connections.
pub type SharedExecutor = Arc<dyn ToolExecutor>;
