//! The start of a turn, once its request has been read.

use outrigger_protocol::id::{MessageId, TurnId};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::turn::CommandCall;

use outrigger_session_state::turn_channel::Compact;

/// A prompt whose files have been read, with the command that produced it, if any.
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

/// The start of a turn.
pub(crate) enum Start {
    Prompt(Box<Prompt>),
    /// A message that wants no reply, to be stored under this id while a turn runs.
    Beside(Box<Prompt>, MessageId),
    /// A prompt whose message is stored already and whose agent and model are chosen.
    Announced(Box<Prompt>),
    Compact(Compact),
    Resume(TurnId),
}

impl Start {
    /// Returns who caused what begins; `None` for a turn that goes on.
    pub(crate) fn causes(&self) -> Option<&Provenance> {
        match self {
            Self::Prompt(it) | Self::Beside(it, _) | Self::Announced(it) => {
                Some(&it.input.provenance)
            }
            Self::Compact(it) => Some(&it.provenance),
            Self::Resume(_) => None,
        }
    }
}
