//! Prompts that join a running turn: they are handed to its driver once their message is stored.

use std::collections::HashSet;
use std::sync::Arc;

use outrigger_kernel::turn::Turn;
use outrigger_prompt::parts::readable;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, PartKind};
use outrigger_protocol::session::{PartInput, PromptInput};
use outrigger_protocol::turn::{Begin, Input, TurnOutcome};
use tokio::sync::oneshot;

use crate::error::AgentError;
use crate::state::{Agent, AgentState};
use crate::turn::start::Prompt;
use outrigger_session_state::histories::Conversation;
use outrigger_session_state::turn_channel::{Joining, Msg};

/// A prompt handed to a driver, with its caller.
pub(crate) struct Joined {
    state: Arc<AgentState>,
    session: SessionId,
    waiting: Vec<(MessageId, oneshot::Sender<TurnOutcome>)>,
}

impl Joined {
    pub(crate) fn new(state: &Arc<AgentState>, session: &SessionId) -> Self {
        Self {
            state: Arc::clone(state),
            session: session.clone(),
            waiting: Vec::new(),
        }
    }

    /// Returns the input for the prompt.
    pub(crate) fn input(&mut self, joining: Joining) -> Input {
        let Joining { begin, ended } = joining;
        self.waiting.push((begin.message.id.clone(), ended));
        Input::Joined { begin }
    }

    /// Makes the messages that joined the turn visible to requests.
    pub(crate) fn stepped(&self, turn: &Turn) {
        if self.waiting.is_empty() {
            return;
        }
        let open = turn.joined();
        let taken = self.waiting.iter().map(|(id, _)| id);
        let taken: Vec<MessageId> = taken.filter(|id| !open.contains(id)).cloned().collect();
        self.state.sessions.queue.release(&self.session, &taken);
    }

    /// Notifies the callers whose prompts the turn answered. The others continue separately, unless they were cancelled
    /// too.
    pub(crate) fn ended(&mut self, turn: Option<&Turn>, outcome: &TurnOutcome) {
        let open = turn.map(Turn::joined).unwrap_or_default();
        for (id, ended) in self.waiting.drain(..) {
            if !open.contains(&&id) {
                let _ = ended.send(outcome.clone());
            }
        }
    }
}

impl Agent {
    /// Hands a prompt with a stored message to the running turn. Returns `None` if no turn can take it.
    pub(crate) fn join(
        &self,
        id: &SessionId,
        prompt: &Prompt,
    ) -> Result<Option<oneshot::Receiver<TurnOutcome>>, AgentError> {
        let Some(turn) = self.state.sessions.turns.steering(id) else {
            return Ok(None);
        };
        // A prompt for another vendor's agent is not answered by the running model.
        if self.executor(&prompt.input)?.is_some() {
            return Ok(None);
        }
        let session = self.session(id)?;
        let conversation = self.state.conversation(id)?;
        let mut prompt = prompt.clone();
        prompt.input.no_reply = None;
        let begin = self.begin(&session, &conversation, prompt)?;
        // The running turn has a working model: it must not end because of an unavailable one.
        if begin.unaskable.is_some() {
            return Ok(None);
        }
        let Some(begin) = stored(begin, &conversation) else {
            return Ok(None);
        };
        let (ended, end) = oneshot::channel();
        let begin = Box::new(begin);
        let sent = turn.send(Msg::Join(Box::new(Joining { begin, ended })));
        Ok(sent.then_some(end))
    }

    /// Like [`Self::join`], for a message that wants no reply: the turn reads it in its next step.
    pub(crate) fn join_silently(
        &self,
        id: &SessionId,
        message: &MessageId,
    ) -> Result<(), AgentError> {
        let found = self.state.store.message(id, message)?;
        if let Some(prompt) = found.and_then(|found| readable(&found)) {
            self.join(id, &prompt.into())?;
        }
        Ok(())
    }

    /// Withdraws a prompt that a running turn may hold.
    pub(crate) fn leave(&self, id: &SessionId, message: &MessageId) {
        if let Some(turn) = self.state.sessions.turns.steering(id) {
            let message_id = message.clone();
            let _ = turn.send(Msg::Input(Input::Left { message_id }));
        }
    }

    /// Returns prompts that a process stored during a turn before it died and that the turn does not know of: the turn is
    /// resumed and takes them in. Prompts for other vendors' agents are returned separately and answered afterwards.
    pub(crate) fn left_behind(
        &self,
        id: &SessionId,
        turn: &Turn,
    ) -> Result<(Vec<Begin>, Vec<PromptInput>), AgentError> {
        let conversation = self.state.conversation(id)?;
        let messages = || conversation.history.iter().filter_map(|m| m.stored());
        let session = self.session(id)?;
        let known = turn.joined();
        let own = &turn.user().id;
        let answered: HashSet<&MessageId> = messages()
            .filter_map(|m| match &m.info {
                MessageInfo::Assistant(answer) => Some(&answer.parent_id),
                MessageInfo::User(_) => None,
            })
            .collect();
        let (mut found, mut for_others) = (Vec::new(), Vec::new());
        for message in messages().filter(|m| m.info.id() > own) {
            let id = message.info.id();
            if answered.contains(id) || known.contains(&id) {
                continue;
            }
            if let Some(prompt) = readable(message) {
                // A prompt for another vendor's agent is not answered by the model.
                if prompt.executor.is_some() {
                    for_others.push(prompt);
                    continue;
                }
                let begin = self.begin(&session, &conversation, prompt.into())?;
                found.extend(stored(begin, &conversation));
            }
        }
        Ok((found, for_others))
    }
}

/// Returns the start of a turn whose message is stored, as its hooks changed it. `None` if the message was removed in the
/// meantime.
pub(crate) fn stored(mut begin: Begin, conversation: &Conversation) -> Option<Begin> {
    let found = conversation.message(&begin.message.id)?;
    let MessageInfo::User(message) = &found.info else {
        return None;
    };
    begin.message = message.clone();
    // A hook may have made it start a subagent.
    begin.provenance.extend(message.provenance.clone());
    // The parts that determine how the turn continues.
    let tasks = found.parts.iter();
    let tasks = tasks.filter(|part| matches!(part.kind, PartKind::Subtask(_)));
    begin.parts = tasks
        .map(|part| PartInput {
            id: Some(part.id.clone()),
            kind: part.kind.clone(),
        })
        .collect();
    begin.stored = true;
    Some(begin)
}
