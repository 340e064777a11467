//! Inputs and effects of the turn machine (`outrigger-kernel::turn`). They are wire types because every input is stored before
//! its effects are executed, and a stored run is replayed from them.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::conversation::compaction::{AutoCompact, CompactRequest, CompactionPlan};
use crate::conversation::message::{MessagePath, ModelRef, NamedError, UserMessage};
use crate::conversation::session::{PartInput, PromptInput};
use crate::id::{CallId, MessageId, PluginId, SessionId, TurnId};
use crate::model::{Prices, Usage};
use crate::plugin::history::{History, WithHistory};
use crate::plugin::hook::Block;
use crate::records::provenance::Provenance;
use crate::tagged::tagged;
use crate::tools::tool::ToolOutcome;

/// Number of an effect within its turn, from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct EffectId(pub u64);

/// The start of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
    /// The turn.
    pub turn: TurnId,
    /// Its session.
    pub session_id: SessionId,
    /// Who caused it.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
    /// The seed of the turn's identifiers.
    pub seed: u64,
    /// The user message as drafted, before the hooks saw it.
    pub message: UserMessage,
    /// Its parts, not yet numbered.
    pub parts: Vec<PartInput>,
    /// The prompt as requested, for the hook's input: keys that the client did not set are absent.
    pub requested: Value,
    /// A slash command whose template created the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandCall>,
    /// Agent that answers.
    pub agent: String,
    /// Model that answers.
    pub model: ModelRef,
    /// Its working directory and project.
    pub path: MessagePath,
    /// Stores the message without calling the model.
    pub no_reply: bool,
    /// The session has no title yet.
    pub wants_title: bool,
    /// Maximum number of model requests in this turn (C16).
    pub max_steps: u32,
    /// Call identifiers already in the session's history, in records before 2026-11-26: all of them. See [`Input::CallsUsed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_calls: Vec<String>,
    /// The message is already stored, with its parts: the turn only answers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
    /// Snapshots of the project's files are taken around steps that may change them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub snapshots: bool,
    /// Repeated calls need approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_loops: bool,
    /// Handlers may keep the turn from ending (`agent_end.before_stop`); they are called when it is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_before_stop: bool,
    /// Handlers may change a step's results for the model (`execute.after_step`); they are called before it is complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks_after_step: bool,
    /// Why the model is unavailable (unknown, or without a key): the message is stored, and the turn fails with this error, as
    /// in OpenCode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unaskable: Option<NamedError>,
    /// Prices of the model.
    pub prices: Prices,
    /// The turn is a requested compaction; `message` and `parts` are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<CompactRequest>,
    /// When the turn compacts automatically. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_compact: Option<AutoCompact>,
}

/// A slash command as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandCall {
    /// Name without the slash.
    pub name: String,
    /// The text after it.
    pub arguments: String,
}

/// A turn, as in `POST /outrigger/session/{id}/turn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnBody {
    /// Answers a prompt.
    Prompt(PromptInput),
    /// Runs a slash command, with further input.
    Command(CommandCall, PromptInput),
    /// Resumes an unfinished turn.
    Resume(TurnId),
}

/// A tool that the model may call in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTool {
    /// Name.
    pub name: String,
    /// A call whose outcome is unknown may be repeated.
    #[serde(default)]
    pub read_only: bool,
}

/// An input of the turn machine.
#[tagged("kind")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A prompt was submitted.
    Begin(Box<Begin>),
    /// A hook chain has completed.
    HookDone {
        /// The effect.
        effect: EffectId,
        /// The folded output, for points whose result the machine stores.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// A handler refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        block: Option<Block>,
        /// Plugins that changed the output, at the points where a prompt is built.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_by: Vec<PluginId>,
    },
    /// The offered tools are known.
    ToolsReady {
        /// The effect.
        effect: EffectId,
        /// The tools that a call may name.
        tools: Vec<KnownTool>,
    },
    /// The model says something.
    Model {
        /// The request.
        effect: EffectId,
        /// The signal.
        signal: ModelSignal,
    },
    /// A tool's hooks and permission questions are done and it runs.
    ToolStarted {
        /// The call.
        effect: EffectId,
        /// Arguments after the hooks.
        input: Value,
        /// Who caused the call, if more than the causes of the turn.
        #[serde(default, skip_serializing_if = "Provenance::is_empty")]
        provenance: Provenance,
    },
    /// A running tool reports progress.
    ToolProgress {
        /// The call.
        effect: EffectId,
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Structured.
        metadata: Value,
    },
    /// A tool call has ended.
    ToolDone {
        /// The call.
        effect: EffectId,
        /// The outcome.
        outcome: ToolOutcome,
    },
    /// A tree of the project's files was made, or could not be.
    FilesTracked {
        /// The effect.
        effect: EffectId,
        /// The snapshot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
        /// Files that changed since the step started, absolute.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
        /// The turn's changes so far, file by file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diffs: Option<Vec<Value>>,
    },
    /// The question about a call that repeats itself was answered.
    LoopAnswered {
        /// The effect.
        effect: EffectId,
        /// Why it is refused; absent if it is allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// A client requests a compaction after this step.
    Compact {
        /// The session continues automatically afterwards.
        auto: bool,
        /// The model to use; absent: that of the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// The user's instructions for the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
    /// The inputs of a compaction are known.
    CompactionPlanned {
        /// The effect.
        effect: EffectId,
        /// The inputs.
        plan: Box<CompactionPlan>,
    },
    /// A compaction cannot start.
    CompactionRefused {
        /// The effect.
        effect: EffectId,
        /// The reason.
        error: NamedError,
    },
    /// The model is about to use call identifiers that are already in the session's history: a new call never gets such an
    /// identifier. Only those that it names: all of them would make each turn as long as its session.
    CallsUsed {
        /// Identifiers.
        ids: Vec<String>,
    },
    /// A prompt arrived during the turn, and its message is stored: the next step reads it and the turn continues with it, as
    /// in OpenCode. `stored` is set; identifiers and title are the turn's own.
    Joined {
        /// The start that the turn would have had.
        begin: Box<Begin>,
    },
    /// A hook requests the end of the turn after this step.
    EndAfterStep,
    /// A prompt that arrived in the meantime was withdrawn.
    Left {
        /// Its message.
        message_id: MessageId,
    },
    /// The user, a client or a parent requests the end of the turn.
    Cancel,
    /// The process that ran this turn has exited and another one resumes it.
    Resumed,
}

/// A model's signal, without the pieces of streamed text.
#[tagged("signal")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelSignal {
    /// The response has started.
    Started,
    /// A text block starts.
    TextStart {
        /** Block. */
        index: u32,
    },
    /// A text block is complete.
    TextEnd {
        /** Block. */
        index: u32,
        /** All of it. */
        text: String,
    },
    /// A reasoning block starts.
    ReasoningStart {
        /** Block. */
        index: u32,
    },
    /// A reasoning block is complete.
    ReasoningEnd {
        /** Block. */
        index: u32,
        /** All of it. */
        text: String,
        /** Signature and the like. */
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// The model has started to write a tool call.
    ToolStart {
        /** Identifier as the model gave it. */
        call_id: String,
        /** Tool. */
        tool: String,
    },
    /// The tool call is complete.
    ToolEnd {
        /** Identifier as the model gave it. */
        call_id: String,
        /** Tool. */
        tool: String,
        /** Arguments as written. */
        raw: String,
        /// Data that the provider wants back with it (a signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// The response has ended.
    Finished {
        /** Why. */
        reason: String,
        /** Tokens. */
        usage: Usage,
    },
    /// The request has finally failed (after retries).
    Failed {
        /** Why. */
        error: NamedError,
    },
}

impl ModelSignal {
    /// Returns the model's identifier of the call that it writes, if the signal is about one.
    #[must_use]
    pub fn call_id(&self) -> Option<CallId> {
        match self {
            Self::ToolStart { call_id, .. } | Self::ToolEnd { call_id, .. } => {
                Some(CallId(call_id.clone()))
            }
            _ => None,
        }
    }
}

/// Input and output of a hook call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct HookPayload {
    /// Hooks must not change it.
    pub input: Value,
    /// Changed in place by hooks.
    pub output: Value,
    /// The field `messages` of the output, if that is a conversation. It is stored separately; handlers see no difference.
    #[serde(skip)]
    pub history: Option<History>,
}

impl HookPayload {
    /// Creates a payload without a conversation.
    #[must_use]
    pub fn new(input: Value, output: Value) -> Self {
        Self {
            input,
            output,
            history: None,
        }
    }

    /// Creates a payload whose output has a conversation as its `messages`.
    #[must_use]
    pub fn with_history(input: Value, history: History) -> Self {
        Self {
            input,
            output: Value::Object(crate::Object::new()),
            history: Some(history),
        }
    }
}

impl Serialize for HookPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("HookPayload", 2)?;
        fields.serialize_field("input", &self.input)?;
        match &self.history {
            None => fields.serialize_field("output", &self.output)?,
            Some(history) => {
                fields.serialize_field("output", &WithHistory(&self.output, history))?;
            }
        }
        fields.end()
    }
}

/// A change of the session record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionPatch {
    /// Agent used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Model used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Tokens to add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// US dollars to add.
    #[serde(default)]
    pub cost: f64,
    /// Also report how many lines changed, and which.
    #[serde(default)]
    pub summarize: bool,
}

/// How a turn ended.
#[tagged("outcome")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model has finished.
    Done {
        /// The last assistant message, if the model was called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
    },
    /// The turn failed.
    Failed {
        /// The error.
        error: NamedError,
    },
    /// The turn was cancelled.
    Cancelled,
}
