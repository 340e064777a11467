//! What a turn starts from.

use outrigger_protocol::id::{MessageId, TurnId};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::PromptInput;
use outrigger_protocol::turn::CommandCall;

/// What a turn starts from.
pub(crate) enum Start {
    Prompt(Box<PromptInput>, Option<CommandCall>),
    /// A message that wants no reply, to be stored under this identifier while a turn runs.
    Beside(Box<PromptInput>, MessageId),
    /// The prompt's message is stored already.
    Announced(Box<PromptInput>, Option<CommandCall>),
    Compact(Compact),
    Resume(TurnId),
}

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
