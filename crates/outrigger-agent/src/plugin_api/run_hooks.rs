//! Running chains of hooks for a session: the calls, their records in the log, and `hook.on_error` where a handler failed.

use outrigger_kernel::hooks::points::hook::on_error;
use outrigger_kernel::hooks::points::llm::before_request;
use outrigger_kernel::hooks::{Empty, HookInput, HookPoint};
use outrigger_plugins::{PipelineContext, PipelineResult};
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::NamedError;
use outrigger_protocol::turn::HookPayload;
use outrigger_tools::CancelFlag;

use crate::state::Inner;
use crate::state::notifications::About;

/// Notified of every handler that failed at another point.
const HOOK_ERROR: HookPoint = HookPoint::HookOnError;

impl Inner {
    /// Runs a chain and writes down what every handler did.
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
            cancel: cancel.map(|flag| flag.receiver()),
            ..PipelineContext::default()
        };
        self.run_chain(point, items, context).await
    }

    /// Runs what of a chain guards: its `fail_closed` handlers and command hooks.
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
        let pipeline = self.plugins.pipeline();
        let _open = session
            .filter(|_| pipeline.has(point))
            .map(|id| self.turns.enter_plugins(id));
        let mut result = pipeline.run(point, items, context).await;
        if !result.records.is_empty() {
            self.write_down(&mut result.records, turn);
            if point != HOOK_ERROR {
                self.notify_hook_errors(&result.records, session, turn);
            }
        }
        result
    }

    /// Asks the handlers that may refuse a request to a model (C2), whatever it is for; a refusal is final.
    ///
    /// # Errors
    /// `HookBlockedError`, with what was said.
    pub(crate) async fn run_before_request_hooks(
        &self,
        about: &before_request::Input<'_>,
        session: &SessionId,
        turn: Option<&TurnId>,
        cancel: Option<CancelFlag>,
    ) -> Result<(), NamedError> {
        const POINT: HookPoint = HookPoint::LlmBeforeRequest;
        if !self.plugins.pipeline().has(POINT) {
            return Ok(());
        }
        let payload = about.payload(&Empty {});
        let result = self
            .run_hooks(POINT, vec![payload], Some(session), turn, cancel)
            .await;
        match result.block {
            None => Ok(()),
            Some(block) => Err(block.into_error(POINT.name())),
        }
    }

    fn write_down(&self, records: &mut [HookRecord], turn: Option<&TurnId>) {
        for record in &mut *records {
            record.audit.step = self.turns.step_of(turn);
        }
        let records = records.iter();
        self.note(
            records
                .map(|r| LogRecord::Hook(Box::new(r.clone())))
                .collect(),
        );
    }

    /// What hooks did that were not reached from here (those of plugins' own points, B8, and of `config`, `event` and
    /// `dispose`), or why they were not run: recorded and reported as for any other chain.
    pub(crate) fn hooks_ran(&self, mut records: Vec<HookRecord>) {
        let Some(first) = records.first() else {
            return;
        };
        let (session, turn) = (first.session.clone(), first.turn.clone());
        self.write_down(&mut records, turn.as_ref());
        self.notify_hook_errors(&records, session.as_ref(), turn.as_ref());
    }

    /// `hook.on_error` (C5). A failure there is recorded and goes no further.
    fn notify_hook_errors(
        &self,
        records: &[HookRecord],
        session: Option<&SessionId>,
        turn: Option<&TurnId>,
    ) {
        if !self.plugins.pipeline().has(HOOK_ERROR) {
            return;
        }
        // An answer against a rule is an error of its plugin as well (C3).
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
            if let Some(inner) = self.this.upgrade() {
                inner.notify_hook(&input, &Empty {}, About::of(session, turn));
            }
        }
    }
}
