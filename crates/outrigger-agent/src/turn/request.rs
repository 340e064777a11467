//! Requests for turns: one type for prompts, commands, compactions and resumed turns.

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::session::{OutputFormat, PromptInput};
use outrigger_session_state::turn_channel::Compact;

use crate::error::AgentError;

/// A request for a turn; [`crate::Agent::run`] carries it out.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRequest {
    /// The session in which the turn runs.
    pub session: SessionId,
    /// Start of the turn.
    pub input: TurnInput,
    /// Sender.
    pub origin: Origin,
}

/// How a turn starts.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnInput {
    /// A prompt of the user.
    Prompt(Box<PromptInput>),
    /// A slash command.
    Command {
        /// Name without the slash.
        name: String,
        /// Text after the name.
        arguments: String,
        /// Files, and the agent and model if the command names none.
        prompt: Box<PromptInput>,
    },
    /// A compaction: a summary replaces the messages of the conversation.
    Compact(Compact),
    /// An unfinished turn is resumed and completed. If it cannot be resumed (an older version decided differently), it is closed
    /// and what is known of it is kept.
    Resume(TurnId),
}

/// Sender of a request for a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// This program. The files of its prompts have been read ([`crate::Agent::attachment`]). If it stops waiting, the turn is
    /// cancelled.
    #[default]
    Program,
    /// A client. Files that it names are read by the rules of the agent that answers; the turn completes even if the client
    /// disconnects.
    Client,
    /// A plugin. Like a client, but the turn is cancelled with the request, and the request is refused with
    /// [`AgentError::WaitsForItself`] if the session's turn itself waits for a plugin, which may be this one.
    Plugin,
}

impl TurnRequest {
    /// Creates a request for a prompt.
    #[must_use]
    pub fn prompt(session: &SessionId, prompt: PromptInput) -> Self {
        Self::new(session, TurnInput::Prompt(Box::new(prompt)))
    }

    /// A slash command.
    #[must_use]
    pub fn command(session: &SessionId, name: &str, arguments: &str, prompt: PromptInput) -> Self {
        let input = TurnInput::Command {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            prompt: Box::new(prompt),
        };
        Self::new(session, input)
    }

    /// Creates a request for a compaction.
    #[must_use]
    pub fn compact(session: &SessionId, compact: Compact) -> Self {
        Self::new(session, TurnInput::Compact(compact))
    }

    /// Creates a request to resume an unfinished turn.
    #[must_use]
    pub fn resume(session: &SessionId, turn: TurnId) -> Self {
        Self::new(session, TurnInput::Resume(turn))
    }

    /// Sets the origin.
    #[must_use]
    pub fn from_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    fn new(session: &SessionId, input: TurnInput) -> Self {
        Self {
            session: session.clone(),
            input,
            origin: Origin::default(),
        }
    }

    /// Whether the answer can be checked against the `format` that the prompt asks for: a schema of no use is refused before
    /// anything is stored.
    ///
    /// # Errors
    /// [`AgentError::BadFormat`].
    pub fn check_format(&self) -> Result<(), AgentError> {
        let TurnInput::Prompt(prompt) = &self.input else {
            return Ok(());
        };
        let Some(schema) = prompt.format.as_ref().and_then(OutputFormat::schema) else {
            return Ok(());
        };
        outrigger_tools::answer::check_form(&schema)
            .map_err(|error| AgentError::BadFormat(error.to_string()))
    }
}
