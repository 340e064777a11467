//! What a protocol is given and what it says.

use std::path::PathBuf;

use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

use crate::used::Used;

/// What the agent is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// What the user says.
    pub prompt: String,
    /// Pictures that go with it, for an agent that takes them.
    pub images: Vec<Image>,
    /// The project folder.
    pub folder: PathBuf,
    /// The vendor's own session to go on with.
    pub resume: Option<String>,
    /// The vendor's name of a model; its own choice where nothing is said.
    pub model: Option<String>,
    /// A person trusts what the project has the agent run.
    pub is_trusted: bool,
    /// The process is in a sandbox of ours: one of its own within that one is not needed, and may not work.
    pub is_sandboxed: bool,
}

/// A picture of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// `image/png` and the like.
    pub mime: String,
    /// In base64.
    pub data: String,
}

/// Something that the agent said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// In the form of all agents.
    pub output: AgentOutput,
    /// What is known of a call besides: it goes into its metadata.
    pub facts: Object,
}

/// A call that waits for permission.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Under which number the protocol knows the question.
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
    /// It may be done.
    Allow,
    /// It may not; the agent goes on and reads why.
    Deny(String),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The agent says that it is done.
    Done,
    /// It failed, and why.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

/// What a line meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The agent said something.
    Say(Said),
    /// A piece of a text or of a thought, which is said as a whole later.
    Piece {
        /// It is one of a thought.
        is_thought: bool,
        /// What comes after the piece before.
        text: String,
    },
    /// What the turn has used up: it takes the place of what was said of it before.
    Used(Used),
    /// A call waits for permission; [`Protocol::answer`] tells the agent.
    Ask(Question),
    /// A line for the agent.
    Send(String),
    /// The vendor's session, by which it is resumed.
    Session(String),
    /// The turn is over.
    End(End),
}

impl Step {
    /// A piece of a text or of a thought, if there is anything in it.
    pub(crate) fn piece(is_thought: bool, text: &str) -> Option<Self> {
        let text = text.to_owned();
        (!text.is_empty()).then_some(Self::Piece { is_thought, text })
    }

    /// Something said of which nothing more is known.
    #[must_use]
    pub fn say(output: AgentOutput) -> Self {
        Self::Say(Said {
            output,
            facts: Object::new(),
        })
    }
}

/// What one vendor's lines mean.
pub trait Protocol: Send {
    /// What is sent first.
    fn begin(&mut self) -> Vec<Step>;
    /// A line of the agent's. What is not understood is said as it is.
    fn line(&mut self, line: &str, at: Millis) -> Vec<Step>;
    /// A question was answered.
    fn answer(&mut self, question: u64, verdict: &Verdict) -> Vec<Step>;
    /// The turn is to end early; where this sends nothing, the process is ended.
    fn cancel(&mut self) -> Vec<Step>;
    /// Its output is over: what was not complete yet is said now.
    fn finish(&mut self, _at: Millis) -> Vec<Step> {
        Vec::new()
    }
}
