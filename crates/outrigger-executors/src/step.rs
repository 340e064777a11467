//! Inputs and outputs of a protocol.

use std::path::PathBuf;

use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

use crate::used::Used;

/// The agent's task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The user's prompt.
    pub prompt: String,
    /// Its images, for an agent that accepts them.
    pub images: Vec<Image>,
    /// The project folder.
    pub folder: PathBuf,
    /// The vendor's session to resume.
    pub resume: Option<String>,
    /// The vendor's model name; default: its own choice.
    pub model: Option<String>,
    /// The user trusts what the project makes the agent run.
    pub is_trusted: bool,
    /// The process is in our sandbox: its own sandbox inside that is unnecessary, and may not work.
    pub is_sandboxed: bool,
}

/// An image of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// `image/png` and the like.
    pub mime: String,
    /// In base64.
    pub data: String,
}

/// An output of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct VendorOutput {
    /// In the form of all agents.
    pub output: AgentOutput,
    /// Further facts of a call, for its metadata.
    pub facts: Object,
}

/// A call that waits for permission.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The protocol's number of the question.
    pub id: u64,
    /// The call.
    pub call: String,
    /// Our name of the tool.
    pub tool: String,
    /// Arguments, as our tool has them.
    pub input: Value,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The action is allowed.
    Allow,
    /// Denied; the agent continues and reads the reason.
    Deny(String),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent has finished.
    Done,
    /// The turn failed, with the reason.
    Failed(String),
    /// The turn was cancelled.
    Cancelled,
}

/// The meaning of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Output of the agent.
    Say(VendorOutput),
    /// A piece of a text or reasoning, which is output as a whole later.
    Piece {
        /// It is a piece of reasoning.
        is_thought: bool,
        /// The text that follows the previous piece.
        text: String,
    },
    /// The turn's usage, which replaces earlier values.
    Used(Used),
    /// A call waits for permission; [`Protocol::answer`] passes the answer on.
    Ask(Question),
    /// A line for the agent.
    Send(String),
    /// The vendor's session, by which it is resumed.
    Session(String),
    /// The turn has ended.
    End(End),
}

impl Step {
    /// Creates a piece, unless it is empty.
    pub(crate) fn piece(is_thought: bool, text: &str) -> Option<Self> {
        let text = text.to_owned();
        (!text.is_empty()).then_some(Self::Piece { is_thought, text })
    }

    /// Creates an output without further facts.
    #[must_use]
    pub fn say(output: AgentOutput) -> Self {
        Self::Say(VendorOutput {
            output,
            facts: Object::new(),
        })
    }
}

/// One vendor's protocol.
pub trait Protocol: Send {
    /// Returns what is sent first.
    fn begin(&mut self) -> Vec<Step>;
    /// Handles a line of the agent. Unknown content is output unmodified.
    fn line(&mut self, line: &str, at: Millis) -> Vec<Step>;
    /// Handles an answered question.
    fn answer(&mut self, question: u64, verdict: &Verdict) -> Vec<Step>;
    /// Cancels the turn; if this sends nothing, the process is ended.
    fn cancel(&mut self) -> Vec<Step>;
    /// Handles the end of its output: incomplete content is output now.
    fn finish(&mut self, _at: Millis) -> Vec<Step> {
        Vec::new()
    }
}
