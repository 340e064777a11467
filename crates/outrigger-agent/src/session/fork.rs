//! Copies of sessions.

use std::collections::HashMap;

use outrigger_kernel::hooks::points::session::before_fork;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{IdMaker, MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts};
use outrigger_protocol::session::Session;

use crate::error::AgentError;
use crate::session::sessions::NewSession;
use crate::state::Agent;
use outrigger_session_state::ids;
use outrigger_stdx::clock::now_ms;

impl Agent {
    /// Copies a session with all its messages into a new one.
    ///
    /// # Errors
    /// As [`Self::fork_session_at`].
    pub async fn fork_session(&self, id: &SessionId) -> Result<Session, AgentError> {
        self.fork_session_at(id, None).await
    }

    /// Copies a session with the messages before `until` (all of them where there is no such message, as in OpenCode)
    /// into a new one.
    ///
    /// # Errors
    /// [`AgentError::NoSession`] and those of the store.
    pub async fn fork_session_at(
        &self,
        id: &SessionId,
        until: Option<&MessageId>,
    ) -> Result<Session, AgentError> {
        let origin = self.session(id)?;
        let about = before_fork::Input {
            session_id: id,
            message_id: until,
        };
        self.notify_before(&about).await;
        let mut messages = self.state.store.messages(id)?;
        if let Some(end) = messages
            .iter()
            .position(|message| Some(message.info.id()) == until)
        {
            messages.truncate(end);
        }
        let fork = self
            .create_session(NewSession {
                title: Some(title(&origin.title)),
                permission: origin.permission.clone(),
                plugin_rules: origin.plugin_rules.clone(),
                ..NewSession::default()
            })
            .await?;
        let events = copies(messages, &fork.id);
        self.state.commit(Vec::new(), events).await?;
        // The fork continues with the agent and model that the session used last.
        self.update_session(&fork.id, |session| {
            session.agent = origin.agent;
            session.model = origin.model;
            session.metadata = origin.metadata;
        })
        .await
    }
}

/// Returns the messages and parts under new ids, in their order.
fn copies(messages: Vec<MessageWithParts>, fork: &SessionId) -> Vec<Event> {
    let mut maker = IdMaker::new(ids::seed());
    let mut events = Vec::new();
    let mut renamed: HashMap<MessageId, MessageId> = HashMap::new();
    for mut message in messages {
        let at = now_ms();
        let new_id = maker.message(at);
        renamed.insert(message.info.id().clone(), new_id.clone());
        match &mut message.info {
            MessageInfo::User(user) => {
                user.id = new_id.clone();
                user.session_id = fork.clone();
            }
            MessageInfo::Assistant(answer) => {
                answer.id = new_id.clone();
                answer.session_id = fork.clone();
                answer.parent_id = renamed.get(&answer.parent_id).cloned().unwrap_or_default();
            }
        }
        events.push(Event::MessageUpdated {
            session_id: fork.clone(),
            info: Box::new(message.info),
        });
        for mut part in message.parts {
            part.id = maker.part(at);
            part.session_id = fork.clone();
            part.message_id = new_id.clone();
            events.push(Event::PartUpdated {
                session_id: fork.clone(),
                part: Box::new(part),
                time: at,
            });
        }
    }
    events
}

/// Returns `NAME (fork #1)`, or the next number for a fork of a fork.
fn title(origin: &str) -> String {
    let known = origin
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" (fork #"))
        .and_then(|(name, n)| Some((name, n.parse::<u64>().ok()?)));
    match known {
        Some((name, n)) => format!("{name} (fork #{})", n.saturating_add(1)),
        None => format!("{origin} (fork #1)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_are_counted() {
        for (origin, want) in [
            ("A", "A (fork #1)"),
            ("A (fork #1)", "A (fork #2)"),
            ("A (fork #x)", "A (fork #x) (fork #1)"),
            ("(fork #9)", "(fork #9) (fork #1)"),
        ] {
            assert_eq!(title(origin), want);
        }
    }
}
