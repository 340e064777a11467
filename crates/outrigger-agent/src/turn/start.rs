//! What a turn starts from, once its request has been read.

use outrigger_protocol::id::{MessageId, TurnId};
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::turn::CommandCall;

use outrigger_session_state::turn_channel::Compact;

/// A prompt whose files have been read, with the command that made it, if one did.
#[derive(Clone)]
pub(crate) struct Prompt {
    pub(crate) input: PromptInput,
    pub(crate) command: Option<CommandCall>,
}

impl From<PromptInput> for Prompt {
    fn from(input: PromptInput) -> Self {
        Self {
            input,
            command: None,
        }
    }
}

/// What a turn starts from.
pub(crate) enum Start {
    Prompt(Box<Prompt>),
    /// A message that wants no reply, to be stored under this identifier while a turn runs.
    Beside(Box<Prompt>, MessageId),
    /// The prompt's message is stored already, and its agent and model are chosen.
    Announced(Box<Prompt>),
    Compact(Compact),
    Resume(TurnId),
}
