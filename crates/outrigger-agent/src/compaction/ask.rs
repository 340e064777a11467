//! Compaction on demand: by a client, by `/compact`, or by a plugin in the middle of a turn.

use outrigger_prompt::compaction::plan::has_text;
use outrigger_prompt::history::active::Active;
use outrigger_protocol::compaction::CompactRequest;
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, ModelRef, UserMessage};
use outrigger_protocol::session::{PromptInput, Session};
use outrigger_protocol::turn::{Begin, TurnOutcome};
use tokio::sync::oneshot;

use crate::error::AgentError;
use crate::state::Agent;
use crate::turn::request::Origin;
use crate::turn::start::Start;
use outrigger_session_state::histories::Conversation;
use outrigger_session_state::turn_channel::Compact;
use outrigger_session_state::turn_channel::{CompactionAsk, Msg};

impl Agent {
    /// Returns whether a command is the built-in compaction: it has no template, and the project does not define a command
    /// of that name.
    #[must_use]
    pub fn is_compact(&self, command: &str) -> bool {
        matches!(command, "compact" | "summarize")
            && !self.state.catalog.commands.contains_key(command)
    }

    /// Returns the compaction that a command requests, with its instructions.
    pub(crate) fn as_compaction(
        &self,
        name: &str,
        arguments: &str,
        prompt: &PromptInput,
    ) -> Option<Compact> {
        // A message of several words on the command line arrives in quotes.
        let said = arguments.trim();
        let bare = said.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        let said = bare.filter(|it| !it.contains('"')).unwrap_or(said);
        self.is_compact(name).then(|| Compact {
            model: prompt.model.clone(),
            auto: false,
            instructions: (!said.is_empty()).then(|| said.to_owned()),
            provenance: prompt.provenance.clone(),
        })
    }

    /// Summarises a session, and answers when its turn is over. While a turn runs, the summary is made after its current
    /// step, as in OpenCode; else it is a turn of its own. A plugin that waits in a hook of that very turn is
    /// answered once the request is stored.
    ///
    /// # Errors
    /// [`AgentError::NothingToCompact`], an unknown session or model, another process at work in the session, and those of
    /// the store.
    pub(crate) async fn compact(
        &self,
        id: &SessionId,
        compact: Compact,
    ) -> Result<TurnOutcome, AgentError> {
        let session = self.session(id)?;
        self.can_compact(&session, &compact)?;
        if self.steer(id, &session, &compact).await {
            let queue = self.state.sessions.locks.queue(id);
            tokio::select! {
                _place = queue.lock() => {}
                () = self.waits_for_plugins(id) => {}
            }
            return Ok(TurnOutcome::Done { message_id: None });
        }
        // If the turn waits for a plugin, the request is refused even from a client: it may be that plugin's client.
        self.start(id, Start::Compact(compact), Origin::Plugin)
            .await
    }

    fn can_compact(&self, session: &Session, compact: &Compact) -> Result<(), AgentError> {
        if let Some(model) = &compact.model {
            self.state.models.resolve(model)?;
        }
        let active = Active::of(self.state.store.messages(&session.id)?);
        if has_text(&active.rest) {
            Ok(())
        } else {
            Err(AgentError::NothingToCompact(session.id.to_string()))
        }
    }

    /// Hands the request to the running turn; returns false if there is none or it is about to end.
    async fn steer(&self, id: &SessionId, session: &Session, compact: &Compact) -> bool {
        let Some(turn) = self.state.sessions.turns.steering(id) else {
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
        let message = Msg::Compact(CompactionAsk { compact, accepted });
        turn.send(message) && answer.await == Ok(true)
    }

    fn compaction_model(
        &self,
        session: &Session,
        compact: &Compact,
    ) -> Result<ModelRef, AgentError> {
        let history = self.state.history(&session.id)?;
        let last = last_prompt(&history).map(|user| user.model.clone());
        match compact.model.clone().or(last) {
            Some(model) => Ok(model),
            None => Ok(self.state.models.default_model()?),
        }
    }

    /// Returns the start of a compaction turn: it uses the agent of the last prompt, as in OpenCode.
    pub(crate) fn begin_compaction(
        &self,
        session: &Session,
        conversation: &Conversation,
        compact: Compact,
    ) -> Result<Begin, AgentError> {
        let model = self.compaction_model(session, &compact)?;
        self.state.models.resolve(&model)?;
        let prompt = PromptInput {
            agent: last_prompt(&conversation.history).map(|user| user.agent.clone()),
            model: Some(model),
            provenance: compact.provenance.clone(),
            ..PromptInput::default()
        };
        let begin = self.begin(session, conversation, prompt.into())?;
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

fn last_prompt(history: &History) -> Option<&UserMessage> {
    let messages = history.iter().rev().filter_map(|m| m.stored());
    messages.into_iter().find_map(|m| match &m.info {
        // An imported message has no model and no agent.
        MessageInfo::User(user) if !user.model.provider_id.is_empty() => Some(user),
        _ => None,
    })
}
