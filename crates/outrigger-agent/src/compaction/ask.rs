//! A compaction on demand: by a client, by `/compact`, or by a plugin in the middle of a turn.

use outrigger_kernel::turn::Turn;
use outrigger_protocol::compaction::CompactRequest;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, ModelRef, UserMessage};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::{PromptInput, Session};
use outrigger_protocol::turn::{Begin, Input, TurnOutcome};
use outrigger_workspace::sync::lock;
use tokio::sync::{mpsc, oneshot};

use super::{has_text, history::Active};
use crate::error::AgentError;
use crate::state::{Agent, Inner};
use crate::turn::drive::Msg;
use crate::turn::turns::Start;

/// What a compaction is asked for with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact {
    /// Model of the conversation from here on, and of the summary unless the `compaction` agent has one. Absent: the
    /// session's.
    pub model: Option<ModelRef>,
    /// The session goes on by itself afterwards.
    pub auto: bool,
    /// What the user says of the summary, such as what it must keep.
    pub instructions: Option<String>,
    /// Who wants it.
    pub provenance: Provenance,
}

/// A request to a turn that runs.
pub(crate) struct Asked {
    compact: Compact,
    accepted: oneshot::Sender<bool>,
}

impl Asked {
    pub(crate) fn input(&self) -> Input {
        Input::Compact {
            auto: self.compact.auto,
            model: self.compact.model.clone(),
            instructions: self.compact.instructions.clone(),
        }
    }

    /// Says whether the turn makes the compaction; one that is about to end does not.
    pub(crate) fn answer(self, state: Option<&Turn>) {
        let _ = self
            .accepted
            .send(state.is_some_and(Turn::has_asked_compaction));
    }
}

/// The way to a turn that runs.
pub(crate) type Steering = mpsc::UnboundedSender<Msg>;

/// Makes a turn reachable until it is dropped.
pub(crate) struct Steered {
    inner: std::sync::Arc<Inner>,
    id: SessionId,
    own: Steering,
}

impl Steered {
    pub(crate) fn new(inner: &std::sync::Arc<Inner>, id: &SessionId, own: &Steering) -> Self {
        // A message that wants no reply is a turn of its own beside the running one, which stays reachable.
        lock(&inner.steering)
            .entry(id.clone())
            .or_insert_with(|| own.clone());
        Self {
            inner: std::sync::Arc::clone(inner),
            id: id.clone(),
            own: own.clone(),
        }
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        let mut all = lock(&self.inner.steering);
        if all
            .get(&self.id)
            .is_some_and(|other| other.same_channel(&self.own))
        {
            all.remove(&self.id);
        }
    }
}

impl Agent {
    /// The command of that name is a compaction: it is no template, and the project has none of that name.
    #[must_use]
    pub fn is_compact(&self, command: &str) -> bool {
        matches!(command, "compact" | "summarize") && !self.inner.commands.contains_key(command)
    }

    /// Summarises a session, and answers when its turn is over. While a turn runs, the summary is made behind its current
    /// step, as in the reference; else it is a turn of its own. A plugin that waits in a hook of that very turn is
    /// answered once the request is stored.
    ///
    /// # Errors
    /// [`AgentError::NothingToCompact`], an unknown session or model, another process at work in the session, and those of
    /// the store. A summary that the model does not write is the outcome, not an error.
    pub async fn compact(
        &self,
        id: &SessionId,
        compact: Compact,
    ) -> Result<TurnOutcome, AgentError> {
        let session = self.session(id)?;
        self.can_compact(&session, &compact)?;
        if self.steer(id, &session, &compact).await {
            let queue = self.inner.sessions.queue(id);
            tokio::select! {
                _place = queue.lock() => {}
                () = self.waits_for_plugins(id) => {}
            }
            return Ok(TurnOutcome::Done { message_id: None });
        }
        self.start(id, Start::Compact(compact), true).await
    }

    fn can_compact(&self, session: &Session, compact: &Compact) -> Result<(), AgentError> {
        if let Some(model) = &compact.model {
            self.inner.models.resolve(model)?;
        }
        let active = Active::of(self.inner.store.messages(&session.id)?);
        if has_text(&active.rest) {
            Ok(())
        } else {
            Err(AgentError::NothingToCompact(session.id.to_string()))
        }
    }

    /// Hands the request to the turn that runs; false when there is none, or when it is about to end.
    async fn steer(&self, id: &SessionId, session: &Session, compact: &Compact) -> bool {
        let Some(turn) = lock(&self.inner.steering).get(id).cloned() else {
            return false;
        };
        let Ok(model) = self.compaction_model(session, compact) else {
            return false;
        };
        let (accepted, answer) = oneshot::channel();
        let compact = Compact {
            model: Some(model),
            ..compact.clone()
        };
        let message = Msg::Compact(Asked { compact, accepted });
        turn.send(message).is_ok() && answer.await == Ok(true)
    }

    fn compaction_model(
        &self,
        session: &Session,
        compact: &Compact,
    ) -> Result<ModelRef, AgentError> {
        let history = self.inner.store.messages(&session.id)?;
        let last = last_prompt(&history).map(|user| user.model.clone());
        match compact.model.clone().or(last) {
            Some(model) => Ok(model),
            None => Ok(self.inner.models.default_model()?),
        }
    }

    /// What the turn of a compaction starts from: the agent of the last prompt, as in the reference.
    pub(crate) fn begin_compaction(
        &self,
        session: &Session,
        history: &[MessageWithParts],
        compact: Compact,
    ) -> Result<Begin, AgentError> {
        let model = self.compaction_model(session, &compact)?;
        self.inner.models.resolve(&model)?;
        let prompt = PromptInput {
            agent: last_prompt(history).map(|user| user.agent.clone()),
            model: Some(model),
            provenance: compact.provenance.clone(),
            ..PromptInput::default()
        };
        let begin = self.begin(session, history, prompt, None)?;
        Ok(Begin {
            compact: Some(CompactRequest {
                auto: compact.auto,
                instructions: compact.instructions,
            }),
            wants_title: false,
            ..begin
        })
    }
}

fn last_prompt(history: &[MessageWithParts]) -> Option<&UserMessage> {
    history.iter().rev().find_map(|m| match &m.info {
        MessageInfo::User(user) => Some(user),
        MessageInfo::Assistant(_) => None,
    })
}
