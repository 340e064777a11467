//! Changing what is in a session by hand: messages and parts that clients take out or rewrite.

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId, SessionId};
use outrigger_protocol::message::Part;

use crate::error::AgentError;
use crate::ids::now;
use crate::inner::{Agent, lock};
use crate::turns::{Owner, own};

impl Agent {
    /// Holds a session at rest: no turn runs in it and none can begin until the answer is dropped.
    ///
    /// # Errors
    /// [`AgentError::Working`] or [`AgentError::Busy`] when a turn runs.
    pub(crate) fn at_rest(&self, id: &SessionId) -> Result<Owner, AgentError> {
        if lock(&self.inner.running).contains_key(id) {
            return Err(AgentError::Working(id.to_string()));
        }
        own(&self.inner.folders.data, id)
    }

    /// Takes a message with its parts out of a session at rest. One that is not there is gone already.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::Working`], [`AgentError::Busy`] and those of the store.
    pub async fn remove_message(
        &self,
        id: &SessionId,
        message: &MessageId,
    ) -> Result<(), AgentError> {
        self.session(id)?;
        let _owner = self.at_rest(id)?;
        if self.inner.store.message(id, message)?.is_none() {
            return Ok(());
        }
        let event = Event::MessageRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
        };
        self.inner.commit(Vec::new(), vec![event]).await
    }

    /// Takes a part out of a message. One that is not there is gone already.
    ///
    /// # Errors
    /// [`AgentError::NoSession`] and those of the store.
    pub async fn remove_part(
        &self,
        id: &SessionId,
        message: &MessageId,
        part: &PartId,
    ) -> Result<(), AgentError> {
        self.session(id)?;
        if self.part(id, message, part)?.is_none() {
            return Ok(());
        }
        let event = Event::PartRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
            part_id: part.clone(),
        };
        self.inner.commit(Vec::new(), vec![event]).await
    }

    /// Puts a part in the place of the one that its identifiers name, or adds it to its message.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::NoMessage`] and those of the store.
    pub async fn update_part(&self, part: Part) -> Result<Part, AgentError> {
        self.session(&part.session_id)?;
        if self
            .inner
            .store
            .message(&part.session_id, &part.message_id)?
            .is_none()
        {
            return Err(AgentError::NoMessage {
                what: part.message_id.to_string(),
                session: part.session_id.to_string(),
            });
        }
        let event = Event::PartUpdated {
            session_id: part.session_id.clone(),
            part: Box::new(part.clone()),
            time: now(),
        };
        self.inner.commit(Vec::new(), vec![event]).await?;
        Ok(part)
    }

    fn part(
        &self,
        id: &SessionId,
        message: &MessageId,
        part: &PartId,
    ) -> Result<Option<Part>, AgentError> {
        let found = self.inner.store.message(id, message)?;
        Ok(found.and_then(|message| message.parts.into_iter().find(|p| p.id == *part)))
    }
}
