//! Runs chains of hooks for a session: the calls, their records in the log, and `hook.on_error` if a handler failed.

use outrigger_kernel::hooks::points::hook::on_error;
use outrigger_kernel::hooks::points::llm::before_request;
use outrigger_kernel::hooks::{Context, HookInput, HookPoint, Phase};
use outrigger_plugins::{PipelineContext, PipelineResult};
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::NamedError;
use outrigger_protocol::model::ModelRequest;
use outrigger_protocol::turn::HookPayload;
use outrigger_tools::CancelFlag;
use serde_json::json;

use crate::state::AgentState;
use outrigger_session_state::notifications::About;

/// Point that is notified of every handler that failed at another point.
const HOOK_ERROR: HookPoint = HookPoint::HookOnError;

impl AgentState {
    /// Runs a chain and records what every handler did.
    pub(crate) async fn run_hooks(
        &self,
        point: HookPoint,
        items: Vec<HookPayload>,
        session: Option<&SessionId>,
        turn: Option<&TurnId>,
        cancel: Option<CancelFlag>,
    ) -> PipelineResult {
        let context = PipelineContext {
            session: session.cloned(),
            turn: turn.cloned(),
            step: self.sessions.turns.step_of(turn),
            cancel: cancel.map(|flag| flag.receiver()),
            ..PipelineContext::default()
        };
        self.run_chain(point, items, context).await
    }

    /// Runs the chain of a notification point that was reached at this step.
    pub(crate) async fn run_notified(
        &self,
        point: HookPoint,
        payload: HookPayload,
        session: Option<SessionId>,
        turn: Option<TurnId>,
        step: Option<String>,
    ) {
        let context = PipelineContext {
            session,
            turn,
            step,
            ..PipelineContext::default()
        };
        let session = context.session.clone();
        let result = self.run_chain(point, vec![payload], context).await;
        if point.spec().phase == Phase::Error {
            self.publish_context(point, session, &result).await;
        }
    }

    /// Publishes what handlers add to an error that was published already (C4): separately, since nothing waited for them.
    async fn publish_context(
        &self,
        point: HookPoint,
        session: Option<SessionId>,
        result: &PipelineResult,
    ) {
        let context: Vec<&str> = result.outputs.iter().flat_map(Context::read).collect();
        if context.is_empty() {
            return;
        }
        tracing::warn!("[plugins] {point}: {}", context.join("; "));
        let properties = json!({ "point": point.name(), "sessionID": session, "context": context });
        let event = Event::Custom(CustomEvent {
            depth: 0,
            kind: "outrigger.error.context".to_owned(),
            properties: properties.as_object().cloned().unwrap_or_default(),
        });
        if let Err(error) = self.commit(Vec::new(), vec![event]).await {
            tracing::warn!("[plugins] {error}");
        }
    }

    /// Runs the guards of a chain: its `fail_closed` handlers and command hooks.
    pub(crate) async fn run_guards(
        &self,
        point: HookPoint,
        item: HookPayload,
        session: &SessionId,
    ) -> PipelineResult {
        let context = PipelineContext {
            session: Some(session.clone()),
            guards_only: true,
            ..PipelineContext::default()
        };
        self.run_chain(point, vec![item], context).await
    }

    async fn run_chain(
        &self,
        point: HookPoint,
        items: Vec<HookPayload>,
        context: PipelineContext,
    ) -> PipelineResult {
        let (session, turn) = (context.session.clone(), context.turn.clone());
        let (session, turn) = (session.as_ref(), turn.as_ref());
        let pipeline = self.plugins.host.pipeline();
        let _open = session
            .filter(|_| pipeline.has(point))
            .map(|id| self.sessions.turns.enter_plugins(id));
        let result = pipeline.run(point, items, context).await;
        if !result.records.is_empty() {
            self.write_down(&result.records);
            if point != HOOK_ERROR {
                self.notify_hook_errors(&result.records, session, turn);
            }
        }
        result
    }

    /// Asks the handlers that may change or refuse a request to a model (C2, C3), whatever it is for; a refusal is final.
    ///
    /// # Errors
    /// `HookBlockedError`, with what was said.
    pub(crate) async fn run_before_request_hooks(
        &self,
        about: &before_request::Input<'_>,
        request: &mut ModelRequest,
        session: &SessionId,
        turn: Option<&TurnId>,
        cancel: Option<CancelFlag>,
    ) -> Result<(), NamedError> {
        const POINT: HookPoint = HookPoint::LlmBeforeRequest;
        self.within_budget(session)?;
        if !self.plugins.host.pipeline().has(POINT) {
            return Ok(());
        }
        let payload = about.payload(&before_request::Output::of(request));
        let result = self
            .run_hooks(POINT, vec![payload], Some(session), turn, cancel)
            .await;
        if let Some(block) = result.block {
            return Err(block.into_error(POINT.name()));
        }
        let changed = result.records.iter().any(|it| !it.changed.is_empty());
        let left = result.outputs.into_iter().next().filter(|_| changed);
        if let Some(Err(error)) = left.map(|left| before_request::read(left, request)) {
            tracing::warn!(
                "[plugins] the handlers of {POINT} left an invalid request, which is not sent: {error}"
            );
        }
        Ok(())
    }

    fn write_down(&self, records: &[HookRecord]) {
        let records = records.iter();
        self.note(
            records
                .map(|r| LogRecord::Hook(Box::new(r.clone())))
                .collect(),
        );
    }

    /// Records hooks that were reached elsewhere (plugins' custom points, B8, and `config`, `event` and `dispose`), or the
    /// reason why they did not run, like those of any other chain.
    pub(crate) fn hooks_ran(&self, records: Vec<HookRecord>) {
        let Some(first) = records.first() else {
            return;
        };
        let (session, turn) = (first.session.clone(), first.turn.clone());
        self.write_down(&records);
        self.notify_hook_errors(&records, session.as_ref(), turn.as_ref());
    }

    /// Calls `hook.on_error` (C5). A failure there is recorded and not reported again.
    fn notify_hook_errors(
        &self,
        records: &[HookRecord],
        session: Option<&SessionId>,
        turn: Option<&TurnId>,
    ) {
        if !self.plugins.host.pipeline().has(HOOK_ERROR) {
            return;
        }
        // An invalid answer counts as an error of its plugin (C3).
        let failed = records
            .iter()
            .filter(|r| r.outcome.is_failure() || r.audit.refused.is_some());
        for record in failed {
            let refused = record.audit.refused.map(|_| OutcomeKind::Refused);
            let input = on_error::Input {
                point: &record.point,
                hook: &record.hook,
                plugin: &record.plugin,
                outcome: refused.unwrap_or(record.outcome).name(),
                message: record.message.as_deref(),
                session_id: session,
            };
            if let Some(state) = self.this.upgrade() {
                state.notify_hook(&input, &Context::default(), About::of(session, turn));
            }
        }
    }
}
