//! Tool calls of another agent (`outrigger mcp serve`), in a session of its connection. Hooks, rules, sandbox and audit apply as
//! to a call of the model; the caller is recorded as a cause.

use std::sync::Arc;

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_protocol::tool::{ToolCall, ToolOutcome, ToolSpec};
use outrigger_protocol::turn::EffectId;
use outrigger_tools::CancelFlag;
use serde_json::Value;
use tokio::sync::watch;

use super::host::{CallHost, CallTurn, MadeBy};
use crate::error::AgentError;
use crate::state::Agent;
use outrigger_session_state::ids;
use outrigger_session_state::turn_channel::Outbox;
use outrigger_stdx::clock::now_ms;

/// Tools that belong to a conversation with a model.
const OF_SESSIONS: [&str; 9] = [
    "task",
    "todowrite",
    "todoread",
    "question",
    "skill",
    "plan_enter",
    "plan_exit",
    "batch",
    "invalid",
];

/// Returns the cause of what another agent does: a client with its own name.
#[must_use]
pub fn asked_by(client: &str) -> Provenance {
    let what = format!("mcp client {client}");
    Provenance::default().with(Actor::Client, Deed::Prompted, Some(what))
}

impl Agent {
    /// Returns the tools that another agent may call: bundled ones and those of plugins, not those of MCP servers and sessions.
    #[must_use]
    pub fn remote_tools(&self) -> Vec<ToolSpec> {
        let specs = self.state.tools.runtime.specs().into_iter();
        specs
            .filter(|spec| !spec.hidden && !outrigger_mcp_tools::is_mcp(spec))
            .filter(|spec| !OF_SESSIONS.contains(&spec.name.as_str()))
            .collect()
    }

    /// Calls one of them by the rules of an agent. When the future is dropped the call is cancelled.
    ///
    /// # Errors
    /// [`AgentError::NoAgent`] without an agent whose rules hold.
    pub async fn remote_call(
        &self,
        session: &SessionId,
        client: &str,
        agent: &str,
        tool: &str,
        input: Value,
    ) -> Result<ToolOutcome, AgentError> {
        let state = &self.state;
        let agent = self.choose_agent(Some(agent))?;
        let call = ToolCall {
            call_id: ids::part().0.as_str().into(),
            session_id: session.clone(),
            message_id: ids::message(),
            agent: agent.name.clone(),
            tool: tool.to_owned(),
            input,
            provenance: asked_by(client),
        };
        let (raise, cancel) = CancelFlag::new();
        let _cancelled = CancelOnDrop(raise);
        // There is no turn to report to, and no model answer to wait for.
        let (sender, _) = Outbox::new();
        let (_silent, speaking) = watch::channel(false);
        let turn = CallTurn {
            state: Arc::clone(state),
            turn: ids::turn(),
            effect: EffectId::default(),
            sender,
            cancel,
            speaking,
        };
        let host = Arc::new(CallHost::new(
            turn,
            &call,
            agent,
            ModelRef::default(),
            MadeBy::Client,
        ));
        let ctx = host.context(&call);
        let subject = format!("{} {}", call.tool, call.call_id);
        let outcome = state.tools.runtime.execute(call, ctx).await.outcome;
        let (decision, errored) = match &outcome {
            ToolOutcome::Completed { .. } => ("completed", false),
            ToolOutcome::Failed { code, .. } => (code.as_str(), true),
        };
        let record = AuditRecord {
            session_id: Some(session.clone()),
            subject: Some(subject),
            provenance: host.causes(),
            output_hash: Some(outrigger_plugins::hash(&outcome)),
            errored,
            ..AuditRecord::new(AuditKind::ToolOutcome, now_ms(), decision)
        };
        state.store.audit_lazily(now_ms(), vec![record]);
        Ok(outcome)
    }
}

struct CancelOnDrop(watch::Sender<bool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}
