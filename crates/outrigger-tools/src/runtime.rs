//! The one way to run a tool (invariant 2): bundled, plugin, MCP and subagent tools all go through [`ToolRuntime::execute`],
//! so hooks, permission questions, limits and the record cannot be missed.

mod attempt;
mod authorize;
mod failure;
mod foreign;
mod lines;
mod registry;
mod result;
mod stage;
mod stages;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use futures_util::FutureExt as _;
use outrigger_protocol::diagnose::Diagnose as _;
use outrigger_protocol::log::ToolAudit;
use outrigger_protocol::log::ToolRecord;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_stdx::clock::now_ms;

use self::attempt::Same;
pub use self::failure::with_context;
pub use self::lines::LineHost;
use self::registry::Entry;
use self::stage::CallProgress;
pub use self::stage::{Listener, Stage};
use crate::error::ToolError;
use crate::host::ToolContext;
use crate::routes::Routes;

/// The error of a call that ended in a panic of ours.
pub const DEFECT: &str = "the tool call ended in a panic; this is a defect of Outrigger";

/// The registered tools, in registry order, and the way to run them.
#[derive(Default)]
pub struct ToolRuntime {
    entries: RwLock<Vec<Entry>>,
    /// The bundled tools, also those that a plugin's tool replaces.
    bundled: RwLock<Vec<Entry>>,
    routes: RwLock<Arc<Routes>>,
    listeners: RwLock<Arc<Vec<Listener>>>,
    /// Names that tools of the user's plugins and servers have or had: no tool of a project takes them.
    users: RwLock<BTreeSet<String>>,
    same: Same,
}

/// Proof that a call went through the runtime. It cannot be built elsewhere.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The outcome.
    pub outcome: ToolOutcome,
    /// The record of the call.
    pub record: ToolRecord,
    _seal: Seal,
}

#[derive(Clone, Debug)]
struct Seal;

impl ToolRuntime {
    /// Creates a runtime without tools; see [`crate::builtin::register_all`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a call (D7), in these stages: look up, validate, capabilities, hooks `tool.before_call`, validate again, normalise,
    /// the tool's own policy, permission questions, intent, bind to a provider, run under deadline and cancellation, output
    /// schema, output limits, hooks `tool.after_result`. If a stage fails, the hooks `tool.on_error` run. The call of the context
    /// is replaced.
    pub async fn execute(&self, call: ToolCall, ctx: ToolContext) -> Executed {
        let mut ctx = ctx.for_call(call);
        let (at, begun) = (now_ms(), Instant::now());
        let listeners = self.listeners.read();
        let listeners = Arc::clone(&listeners.unwrap_or_else(PoisonError::into_inner));
        let entry = self.find(&ctx.call.tool);
        if let Some(entry) = &entry {
            ctx.apply_constraints(&entry.descriptor.declared.constraints, &entry.held);
        }
        let ctx = ctx;
        let progress = CallProgress::new(&ctx.call, listeners);
        let mut input = ctx.call.input.clone();
        let mut fingerprint = None;
        let stages = self.stages(entry, &ctx, &progress, &mut input, &mut fingerprint);
        // A panic fails the call, and is reported and recorded like every other failure.
        let ended = match AssertUnwindSafe(stages).catch_unwind().await {
            Ok(ended) => ended,
            Err(_) => Err(ToolError::failed(DEFECT).into()),
        };
        let outcome = match ended {
            Ok(output) => ToolOutcome::Completed { input, output },
            Err(stop) => ToolOutcome::Failed {
                code: stop.error.code().to_owned(),
                message: failure::explained(&stop.error, &input, progress.began(), &ctx).await,
                input,
                metadata: stop.metadata,
            },
        };
        let label = match &outcome {
            ToolOutcome::Completed { .. } => "completed".to_owned(),
            ToolOutcome::Failed { code, .. } => code.clone(),
        };
        progress.reached(&Stage::Ended { outcome: &label });
        let (retries, joined) = (progress.retries(), progress.joined());
        let record = ToolRecord {
            permissions: ctx.decisions(),
            fingerprint,
            retries,
            joined,
            call: ctx.call,
            turn: None,
            provenance: Provenance::default(),
            outcome: label,
            duration_ms: begun.elapsed().as_secs_f64() * 1000.0,
            at,
            audit: ToolAudit::default(),
        };
        Executed {
            outcome,
            record,
            _seal: Seal,
        }
    }
}

impl ToolRuntime {
    /// Returns the current routes.
    fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes.read().unwrap_or_else(PoisonError::into_inner))
    }
}
