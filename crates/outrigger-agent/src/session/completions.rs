//! `message.completed` (A4): exactly once for each message of a model, whichever code path completed it, and across crashes.
//!
//! The pending notification is stored in one transaction with the end of the message. The notifier first records that it is
//! about to notify, so that a handler that has started is not called again. Notifications that a dead process left are taken
//! over by the next one.

use outrigger_kernel::hooks::points::session::after_complete_message::{Input, Model, Output};
use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::log::{CompletionRecord, LogRecord};
use outrigger_protocol::message::{AssistantMessage, MessageInfo};
use outrigger_protocol::turn::HookPayload;

use crate::error::AgentError;
use crate::session::owner::own;
use crate::state::AgentState;
use outrigger_session_state::ids;
use outrigger_session_state::notifications::{About, What};
use outrigger_stdx::clock::now_ms;

const POINT: HookPoint = HookPoint::SessionAfterCompleteMessage;

/// Hook points that are reached when a message completes.
const POINTS: [HookPoint; 3] = [
    POINT,
    HookPoint::ExecuteAfterStep,
    HookPoint::ExecuteOnError,
];

impl AgentState {
    /// Returns the messages that these events complete: those that were open before. Called before the events are stored;
    /// adds a record of each if plugins must be notified.
    pub(crate) fn completions(
        &self,
        records: &mut Vec<LogRecord>,
        events: &[BusEvent],
    ) -> Vec<CompletionRecord> {
        let pipeline = self.plugins.host.pipeline();
        if !POINTS.iter().any(|point| pipeline.has(*point)) {
            return Vec::new();
        }
        let turn = records.iter().find_map(|record| record.turn().cloned());
        let (mut open, mut completed) = (Vec::new(), Vec::<CompletionRecord>::new());
        for (session, message) in events.iter().filter_map(assistant) {
            if is_open(message) {
                open.push(&message.id);
                continue;
            }
            let is_known = completed.iter().any(|it| it.message == message.id);
            if is_known || !(open.contains(&&message.id) || self.is_stored_open(session, message)) {
                continue;
            }
            completed.push(CompletionRecord {
                session: session.clone(),
                message: message.id.clone(),
                turn: turn.clone(),
                taker: None,
            });
        }
        if pipeline.has(POINT) {
            let due = completed.iter().cloned().map(Box::new);
            records.extend(due.map(LogRecord::Completion));
        }
        completed
    }

    fn is_stored_open(&self, session: &SessionId, message: &AssistantMessage) -> bool {
        let stored = self.store.message(session, &message.id).ok().flatten();
        stored.is_some_and(|it| matches!(&it.info, MessageInfo::Assistant(it) if is_open(it)))
    }

    /// Notifies plugins of completed messages after they are stored.
    pub(crate) fn notify_completions(&self, completed: Vec<CompletionRecord>) {
        let Some(state) = self.this.upgrade().filter(|_| !completed.is_empty()) else {
            return;
        };
        if !self.plugins.host.pipeline().has(POINT) {
            return;
        }
        for it in completed {
            let about = About::of(Some(&it.session), it.turn.as_ref());
            state.notify(What::Completed(it.message), about);
        }
    }

    /// Sends the notifications that a dead process left. Sessions owned by another live process are skipped.
    pub(crate) fn notify_left_completions(&self) {
        if !self.plugins.host.pipeline().has(POINT) {
            return;
        }
        let due = self.store.due_completions().unwrap_or_else(|error| {
            tracing::warn!("[plugins] {error}");
            Vec::new()
        });
        let directory = self.project.location.directory.to_string_lossy();
        let is_ours = |it: &CompletionRecord| {
            let session = self.store.session(&it.session).ok().flatten();
            session.is_some_and(|session| session.directory == directory)
                && own(&self.project.folders.data, &it.session).is_ok()
        };
        self.notify_completions(due.into_iter().filter(is_ours).collect());
    }

    /// Returns the payload of a message for the first caller that claims it.
    pub(crate) async fn take_completion(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Option<(HookPoint, HookPayload)> {
        match self.take(session, message).await {
            Ok(true) => self.completion_payload(session, message),
            Ok(false) => None,
            Err(error) => {
                tracing::warn!("[plugins] {POINT} of {message} waits for the next start: {error}");
                None
            }
        }
    }

    async fn take(&self, session: &SessionId, message: &MessageId) -> Result<bool, AgentError> {
        // A removed or claimed completion needs no notification.
        let taken = self.store.completion_taker(session, message)?;
        if taken.is_some() {
            return Ok(false);
        }
        let taker = ids::unique();
        let record = CompletionRecord {
            session: session.clone(),
            message: message.clone(),
            turn: None,
            taker: Some(taker.clone()),
        };
        let record = LogRecord::Completion(Box::new(record));
        self.store.append(now_ms(), vec![record]).await?;
        Ok(self.store.completion_taker(session, message)? == Some(taker))
    }

    fn completion_payload(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Option<(HookPoint, HookPayload)> {
        let stored = self.store.message(session, message).ok().flatten()?;
        let MessageInfo::Assistant(info) = &stored.info else {
            return None;
        };
        let input = Input {
            session_id: session,
            agent: &info.agent,
            message_id: message,
            model: Model {
                provider_id: &info.provider_id,
                model_id: &info.model_id,
            },
            variant: info.variant.as_deref(),
        };
        let output = Output {
            message: &stored.info,
            parts: &stored.parts,
        };
        Some((POINT, input.payload(&output)))
    }
}

fn assistant(event: &BusEvent) -> Option<(&SessionId, &AssistantMessage)> {
    let Event::MessageUpdated { session_id, info } = &event.event else {
        return None;
    };
    match info.as_ref() {
        MessageInfo::Assistant(message) => Some((session_id, message)),
        MessageInfo::User(_) => None,
    }
}

fn is_open(message: &AssistantMessage) -> bool {
    message.time.completed.is_none()
}
