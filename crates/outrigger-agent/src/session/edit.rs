//! Edits to sessions by clients and plugins: messages and parts that they remove or rewrite. A plugin that changes a user
//! message, or adds to an answer of the model, influences the prompt: it is a cause of every turn that reads the message.

use outrigger_plugins::Grant;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId, PluginId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, UserMessage};
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance};
use outrigger_protocol::session::{PartInput, PromptInput};

use crate::error::AgentError;
use crate::session::owner::{Owner, own};
use crate::state::Agent;
use outrigger_session_state::facts::Facts;
use outrigger_stdx::clock::now_ms;

/// Value of [`Cause::what`] for a plugin that sent an earlier message of the session, and for one that changed a message.
const EARLIER: &str = "an earlier message";
pub(crate) const CHANGED: &str = "a change of a message";

/// Returns whether a part has the stored content, whatever its other fields.
fn says_the_same(part: &PartInput, stored: &Part) -> bool {
    match (&part.kind, &stored.kind) {
        (PartKind::Text(new), PartKind::Text(old)) => new.text == old.text,
        (new, old) => new == old,
    }
}

/// Returns whether a plugin may add, change and remove parts of this kind: those that hold content. The others record what a
/// turn did: its calls, its steps with their snapshots, the files that they changed.
fn is_content(kind: &PartKind) -> bool {
    matches!(
        kind,
        PartKind::Text(_) | PartKind::Reasoning(_) | PartKind::File(_) | PartKind::Agent(_)
    )
}

/// Checks that a part is no record of what a turn did, neither by its new content nor by the stored one. A revert restores
/// files from these records.
fn is_no_record(part: &Part, found: &MessageWithParts) -> Result<(), AgentError> {
    let before = found.parts.iter().find(|it| it.id == part.id);
    let kinds = [Some(&part.kind), before.map(|it| &it.kind)];
    match kinds.into_iter().flatten().find(|it| !is_content(it)) {
        Some(PartKind::Tool(_)) => Err(AgentError::NotGranted(
            "a plugin cannot change the record of a tool call or of its result; the hook `tool.execute.after` changes \
             the result that the model reads"
                .to_owned(),
        )),
        Some(kind) => Err(AgentError::NotGranted(format!(
            "a plugin cannot add, change or remove a part of type `{}`: it records what a turn did; it can for \
             the types `text`, `reasoning`, `file` and `agent`",
            kind.name()
        ))),
        None => Ok(()),
    }
}

/// Checks that a plugin's prompt holds content and subtasks only.
pub(crate) fn may_send(prompt: &PromptInput) -> Result<(), AgentError> {
    let may = |kind: &PartKind| is_content(kind) || matches!(kind, PartKind::Subtask(_));
    let is_plugins = !prompt.provenance.plugins_that(Deed::Prompted).is_empty();
    let mut parts = prompt.parts.iter().filter(|_| is_plugins);
    match parts.find(|part| !may(&part.kind)) {
        Some(part) => Err(AgentError::NotGranted(format!(
            "a plugin's prompt cannot have a part of type `{}`: it records what a turn did",
            part.kind.name()
        ))),
        None => Ok(()),
    }
}

/// Returns the plugins that sent or rewrote messages of a session: a turn reads all of them. `own` is the message that it begins
/// with.
pub(crate) fn plugins_that_prompted(facts: &Facts, own: Option<&MessageId>) -> Provenance {
    let others = facts.prompted.iter().filter(|(id, _)| own != Some(id));
    others.fold(Provenance::default(), |causes, (_, plugin)| {
        let what = Some(EARLIER.to_owned());
        causes.with(Actor::plugin(plugin), Deed::Prompted, what)
    })
}

impl Agent {
    /// Holds a session at rest: no turn runs in it and none can begin until the answer is dropped.
    ///
    /// # Errors
    /// [`AgentError::Working`] or [`AgentError::Busy`] when a turn runs.
    pub(crate) fn at_rest(&self, id: &SessionId) -> Result<Owner, AgentError> {
        if self.state.sessions.turns.is_running(id) {
            return Err(AgentError::Working(id.to_string()));
        }
        own(&self.state.project.folders.data, id)
    }

    /// Takes a message with its parts out of a session at rest. One that is not there is gone already. A plugin removes what it
    /// sent and what models answered; the user's words only with the grant to prompt.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::Working`], [`AgentError::Busy`], [`AgentError::NotGranted`] and those of the
    /// store.
    pub async fn remove_message(
        &self,
        id: &SessionId,
        message: &MessageId,
        by: &Actor,
    ) -> Result<(), AgentError> {
        self.session(id)?;
        let _owner = self.at_rest(id)?;
        let Some(found) = self.state.store.message(id, message)? else {
            return Ok(());
        };
        self.may_remove(by, std::slice::from_ref(&found))?;
        let event = Event::MessageRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
        };
        self.state.commit(Vec::new(), vec![event]).await
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
        by: &Actor,
    ) -> Result<(), AgentError> {
        self.session(id)?;
        let found = self.state.store.message(id, message)?;
        let Some(found) = found.filter(|found| found.parts.iter().any(|p| p.id == *part)) else {
            return Ok(());
        };
        if by.plugin_id().is_some()
            && let Some(part) = found.parts.iter().find(|it| it.id == *part)
        {
            is_no_record(part, &found)?;
        }
        let event = Event::PartRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
            part_id: part.clone(),
        };
        self.change_part(found, event, by).await
    }

    /// Puts a part in the place of the one that its identifiers name, or adds it to its message.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::NoMessage`] and those of the store.
    pub async fn update_part(&self, part: Part, by: &Actor) -> Result<Part, AgentError> {
        self.session(&part.session_id)?;
        let found = self
            .state
            .store
            .message(&part.session_id, &part.message_id)?;
        let Some(found) = found else {
            return Err(AgentError::NoMessage {
                what: part.message_id.to_string(),
                session: part.session_id.to_string(),
            });
        };
        if by.plugin_id().is_some() {
            is_no_record(&part, &found)?;
        }
        let event = Event::PartUpdated {
            session_id: part.session_id.clone(),
            part: Box::new(part.clone()),
            time: now_ms(),
        };
        self.change_part(found, event, by).await?;
        Ok(part)
    }

    /// Returns whether a prompt may replace the stored message with its id. A plugin may replace its own message, and may resend
    /// the user's unchanged (`oh-my-opencode` does, to another model).
    pub(crate) fn may_replace(
        &self,
        id: &SessionId,
        prompt: &PromptInput,
    ) -> Result<(), AgentError> {
        let plugins = prompt.provenance.plugins_that(Deed::Prompted);
        let Some(message) = prompt.message_id.as_ref().filter(|_| !plugins.is_empty()) else {
            return Ok(());
        };
        let Some(found) = self.state.store.message(id, message)? else {
            return Ok(());
        };
        let MessageInfo::User(user) = &found.info else {
            return Ok(());
        };
        let stored = |part: &PartInput| found.parts.iter().any(|it| says_the_same(part, it));
        if prompt.parts.iter().all(stored) {
            return Ok(());
        }
        plugins
            .iter()
            .try_for_each(|it| self.may_change(it, user, "replaces a message of the user's"))
    }

    /// Checks that an actor removes no message of others: a plugin removes what it sent and what models answered, and the user's
    /// words only with the grant to prompt.
    ///
    /// # Errors
    /// [`AgentError::NotGranted`].
    pub(crate) fn may_remove(
        &self,
        by: &Actor,
        messages: &[MessageWithParts],
    ) -> Result<(), AgentError> {
        let Some(plugin) = by.plugin_id() else {
            return Ok(());
        };
        messages.iter().try_for_each(|message| match &message.info {
            MessageInfo::User(user) => {
                self.may_change(&plugin, user, "removes a message of the user's")
            }
            MessageInfo::Assistant(_) => Ok(()),
        })
    }

    fn may_change(
        &self,
        plugin: &PluginId,
        user: &UserMessage,
        what: &str,
    ) -> Result<(), AgentError> {
        // The sender comes first, then those who changed it.
        let sender = user.provenance.causes().first();
        let is_its_own = sender
            .is_some_and(|it| it.actor.plugin_id().as_ref() == Some(plugin) && it.what.is_none());
        let lacking = self.state.lacks(plugin, Grant::Prompt, what);
        match lacking.filter(|_| !is_its_own) {
            Some(lacking) => Err(AgentError::NotGranted(lacking.why)),
            None => Ok(()),
        }
    }

    /// Publishes a change of a part, with the plugin that made it as a cause of everything that follows from the message.
    /// Removing a part of an answer gives the model no new text.
    async fn change_part(
        &self,
        found: MessageWithParts,
        event: Event,
        by: &Actor,
    ) -> Result<(), AgentError> {
        let adds = matches!(event, Event::PartUpdated { .. });
        let is_prompt = adds || matches!(found.info, MessageInfo::User(_));
        if by.plugin_id().is_none() || !is_prompt {
            return self.state.commit(Vec::new(), vec![event]).await;
        }
        let cause = Cause {
            actor: by.clone(),
            did: Deed::Prompted,
            what: Some(CHANGED.to_owned()),
        };
        let mut info = found.info;
        let message = info.id().clone();
        let (session, is_written) = match &mut info {
            MessageInfo::User(user) => {
                user.provenance.push(cause.clone());
                (user.session_id.clone(), true)
            }
            MessageInfo::Assistant(answer) => {
                answer.provenance.push(cause.clone());
                (answer.session_id.clone(), answer.time.completed.is_some())
            }
        };
        // The turn that writes an incomplete answer publishes it again with its causes.
        if !is_written && self.state.sessions.turns.is_running(&session) {
            self.state
                .plugins
                .message_changes
                .add(&session, &message, cause);
            return self.state.commit(Vec::new(), vec![event]).await;
        }
        let changed = Event::MessageUpdated {
            session_id: session.clone(),
            info: Box::new(info),
        };
        self.state.commit(Vec::new(), vec![changed, event]).await?;
        // Check after storing: a turn that begins later reads the change.
        if self.state.sessions.turns.is_running(&session) {
            self.state
                .plugins
                .message_changes
                .add(&session, &message, cause);
        }
        Ok(())
    }
}
