//! Closes what is open in turns that a dead process left and that are not resumed.

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::{LogRecord, TurnStep};
use outrigger_protocol::message::{
    MessageInfo, MessageWithParts, NamedError, PartKind, PartTime, TextPart, ToolState,
};
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::turn::Input;

use crate::error::AgentError;
use crate::state::Agent;
use outrigger_session_state::histories::Conversation;
use outrigger_stdx::clock::now_ms;

impl Agent {
    /// Closes what a dead process left open in the sessions of subagents: their parent no longer waits for them.
    pub(crate) async fn close_children(&self, id: &SessionId) -> Result<(), AgentError> {
        let mut waiting = self.state.store.children(id)?;
        while let Some(child) = waiting.pop() {
            waiting.extend(self.state.store.children(&child.id)?);
            // Another process works on that session and is responsible for it.
            if let Ok(_owner) = self.own(&child.id) {
                self.close_open(
                    &child.id,
                    "the turn that started this subagent was interrupted",
                )
                .await?;
            }
        }
        Ok(())
    }

    /// Closes the user's commands (see [`Self::shell`]) that a dead process left: they belong to no turn.
    pub(crate) async fn close_shells(
        &self,
        id: &SessionId,
        conversation: &Conversation,
    ) -> Result<bool, AgentError> {
        if conversation.facts.open.is_empty() {
            return Ok(false);
        }
        // The message of a prompt that is stored while a turn runs does not affect that turn.
        if self
            .state
            .store
            .open_turns()?
            .iter()
            .any(|(_, session)| session == id)
        {
            return Ok(false);
        }
        let error = NamedError::new(
            "TurnAbandonedError",
            "The program ended before this call completed",
        );
        let events = closings(id, open_answers(conversation), &error, now_ms());
        let any = !events.is_empty();
        if any {
            self.state.commit(Vec::new(), events).await?;
        }
        Ok(any)
    }

    /// Closes the open turns of a session that this process owns.
    pub(crate) async fn close_open(&self, id: &SessionId, why: &str) -> Result<(), AgentError> {
        for (turn, _) in self
            .state
            .store
            .open_turns()?
            .into_iter()
            .filter(|(_, session)| session == id)
        {
            self.abandon(id, &turn, why).await?;
        }
        Ok(())
    }

    /// Closes a turn that cannot be resumed: completes its open parts and records the reason in the log.
    pub(crate) async fn abandon(
        &self,
        id: &SessionId,
        turn: &TurnId,
        why: &str,
    ) -> Result<(), AgentError> {
        let at = now_ms();
        let error = NamedError::new(
            "TurnAbandonedError",
            format!("This turn was interrupted and could not be resumed: {why}"),
        );
        let mut events = closings(id, open_answers(&self.state.conversation(id)?), &error, at);
        events.push(Event::SessionError {
            session_id: Some(id.clone()),
            error,
        });
        events.push(Event::SessionStatus {
            session_id: id.clone(),
            status: SessionStatus::Idle,
        });
        events.push(Event::SessionIdle {
            session_id: id.clone(),
        });
        let steps = self.state.store.turn_steps(turn)?;
        let step = TurnStep {
            turn: turn.clone(),
            session_id: id.clone(),
            n: steps.last().map_or(0, |step| step.n + 1),
            at,
            input: Input::Cancel,
            intents: Vec::new(),
            digest: String::new(),
            last: true,
            abandoned: Some(why.to_owned()),
        };
        self.state
            .commit(vec![LogRecord::TurnStep(Box::new(step))], events)
            .await
    }
}

fn open_answers(conversation: &Conversation) -> Vec<MessageWithParts> {
    let open = conversation.facts.open.iter();
    open.filter_map(|id| conversation.message(id).cloned())
        .collect()
}

/// Returns events that complete the messages and parts that are still open.
fn closings(
    id: &SessionId,
    messages: Vec<MessageWithParts>,
    error: &NamedError,
    at: u64,
) -> Vec<Event> {
    let mut events = Vec::new();
    for message in messages {
        let MessageInfo::Assistant(mut info) = message.info else {
            continue;
        };
        if info.time.completed.is_some() {
            continue;
        }
        for mut part in message.parts {
            if close_part(&mut part.kind, at) {
                events.push(Event::PartUpdated {
                    session_id: id.clone(),
                    part: Box::new(part),
                    time: at,
                });
            }
        }
        info.time.completed = Some(at);
        info.error = Some(error.clone());
        events.push(Event::MessageUpdated {
            session_id: id.clone(),
            info: Box::new(MessageInfo::Assistant(info)),
        });
    }
    events
}

/// Completes an open part; returns false if it was complete already.
fn close_part(kind: &mut PartKind, at: u64) -> bool {
    match kind {
        PartKind::Text(TextPart {
            time: Some(time), ..
        }) if time.end.is_none() => time.end = Some(at),
        PartKind::Reasoning(body) if body.time.end.is_none() => body.time.end = Some(at),
        PartKind::Tool(call) if !call.state.is_final() => {
            let start = match &call.state {
                ToolState::Running { time, .. } => time.start,
                _ => at,
            };
            call.state = ToolState::Error {
                input: call.state.input().clone(),
                error: outrigger_kernel::turn::INTERRUPTED.to_owned(),
                metadata: None,
                time: PartTime {
                    start,
                    end: Some(at),
                    ..PartTime::default()
                },
            };
        }
        _ => return false,
    }
    true
}
