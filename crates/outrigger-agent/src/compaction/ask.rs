//! Compaction on demand: by a client, by `/compact`, or by a plugin in the middle of a turn.

use outrigger_prompt::compaction::plan::has_text;
use outrigger_prompt::history::active::Active;
use outrigger_protocol::compaction::CompactRequest;
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, ModelRef, UserMessage};
use outrigger_protocol::provenance::Deed;
use outrigger_protocol::session::{PromptInput, Session};
use outrigger_protocol::turn::{Begin, TurnOutcome};
use tokio::sync::oneshot;

use crate::error::AgentError;
use crate::state::Agent;
use crate::turn::request::Origin;
use crate::turn::start::Start;
use outrigger_session_state::histories::Conversation;
use outrigger_session_state::turn_channel::{Compact, CompactionAsk, Msg};

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
        // A compaction by the user begins no new count, since it is not a prompt.
        if !compact.provenance.prompted_by_plugins().is_empty() {
            self.admit_turn(id, &compact.provenance)?;
        }
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
        let last = prompts(&history).next().map(|user| user.model.clone());
        match compact.model.clone().or(last) {
            Some(model) => Ok(model),
            None => Ok(self.state.models.default_model()?),
        }
    }

    /// Returns the agent of the last prompt, which answers a compaction in OpenCode. One that a plugin chose counts only if it may do
    /// no more than that of the last prompt before it.
    fn last_agent(&self, history: &History) -> Option<String> {
        let is_by_others = |user: &&UserMessage| user.provenance.prompted_by_plugins().is_empty();
        let by_others = prompts(history).find(is_by_others);
        let usual = by_others.map(|user| user.agent.as_str());
        let may = |user: &&UserMessage| {
            let plugins = user.provenance.plugins_that(Deed::Prompted);
            let mut plugins = plugins.iter();
            plugins.all(|plugin| self.may_leave_agent(plugin, usual, &user.agent))
        };
        prompts(history).find(may).map(|user| user.agent.clone())
    }

    /// Returns the start of a compaction turn.
    pub(crate) fn begin_compaction(
        &self,
        session: &Session,
        conversation: &Conversation,
        compact: Compact,
    ) -> Result<Begin, AgentError> {
        let model = self.compaction_model(session, &compact)?;
        self.state.models.resolve(&model)?;
        let prompt = PromptInput {
            agent: self.last_agent(&conversation.history),
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

/// Returns the user messages, the newest first. An imported one has no model and no agent.
fn prompts(history: &History) -> impl Iterator<Item = &UserMessage> {
    let messages = history.iter().rev().filter_map(|m| m.stored());
    messages.filter_map(|m| match &m.info {
        MessageInfo::User(user) if !user.model.provider_id.is_empty() => Some(user),
        _ => None,
    })
}
