//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::session::OutputFormat;
use crate::id::{CallId, MessageId, PartId, SessionId};
use crate::records::provenance::Provenance;
use crate::{Millis, Object};

/// Which model answered or shall answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ModelRef {
    /// Provider, as named in the configuration.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Model, as named by that provider.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Named set of options of that model (reasoning effort and the like).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl ModelRef {
    /// Parses `provider/model`; the model's name may itself contain slashes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.split_once('/')?;
        (!provider.is_empty() && !model.is_empty()).then(|| Self {
            provider_id: provider.into(),
            model_id: model.into(),
            variant: None,
        })
    }
}

/// Tokens that a request used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// All of them; absent until a step has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Sent, cache hits not counted.
    pub input: u64,
    /// Received, reasoning not counted.
    pub output: u64,
    /// Received as reasoning.
    pub reasoning: u64,
    /// Served from or written to the provider's cache.
    pub cache: CacheTokens,
}

/// Tokens served from or written to a provider's prompt cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheTokens {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
}

/// When something was made and, for assistant messages, finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageTime {
    /// Made.
    pub created: Millis,
    /// Finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Millis>,
}

/// A message without its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum MessageInfo {
    /// What the user, a command, a plugin or a parent agent asked.
    User(UserMessage),
    /// What the model answered in one step.
    Assistant(AssistantMessage),
}

impl MessageInfo {
    /// The message's identifier.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(m) => &m.id,
            Self::Assistant(m) => &m.id,
        }
    }
    /// The session it belongs to.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::User(m) => &m.session_id,
            Self::Assistant(m) => &m.session_id,
        }
    }
    /// `user` or `assistant`.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
        }
    }
}

/// A user message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Identifier.
    pub id: MessageId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// When it was made.
    pub time: MessageTime,
    /// Agent that shall answer.
    pub agent: String,
    /// Model that shall answer.
    pub model: ModelRef,
    /// System text for this prompt alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tools switched on or off for this prompt alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Object>,
    /// What the answer shall look like; text where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// `{diffs: […]}`: files that the answer changed, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Who sent it, where that was not the user alone. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Provenance::is_plain")]
    pub provenance: Provenance,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// An assistant message: one step of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Identifier.
    pub id: MessageId,
    /// The user message that it answers.
    #[serde(rename = "parentID")]
    pub parent_id: MessageId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Agent, under its older name.
    pub mode: String,
    /// Agent.
    pub agent: String,
    /// Named set of model options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Where it worked.
    pub path: MessagePath,
    /// Price in US dollars.
    pub cost: f64,
    /// Tokens used.
    pub tokens: Tokens,
    /// Model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// When it was made and finished.
    pub time: MessageTime,
    /// Why the model stopped: `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`, `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NamedError>,
    /// True for a summary made by compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<bool>,
    /// The answer, where the prompt wanted one of a JSON Schema (its `format`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// Working directory and project root of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePath {
    /// Working directory.
    pub cwd: String,
    /// Project root.
    pub root: String,
}

/// An error as OpenCode sends it: a name that clients switch on, and data with at least `message`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamedError {
    /// `UnknownError`, `MessageAbortedError`, `ProviderAuthError`, `APIError`, `MessageOutputLengthError` …
    pub name: String,
    /// `{message, …}`.
    pub data: Value,
}

impl NamedError {
    /// An error that has a message and nothing else.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            data: serde_json::json!({ "message": message.into() }),
        }
    }
    /// The message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        self.data
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or(&self.name)
    }
}

/// A part of a message. The keys that every part has stand beside its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Identifier.
    pub id: PartId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// What it is.
    #[serde(flatten)]
    pub kind: PartKind,
}

/// Start and end of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTime {
    /// Begun.
    pub start: Millis,
    /// Ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Millis>,
    /// When the output of a tool call was taken out of requests to save room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Millis>,
}

/// The kinds of part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "tool calls are the most common parts and the largest; a box for each would cost more than it saves"
)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PartKind {
    /// Text of the user or the model.
    Text(TextPart),
    /// What the model thought.
    Reasoning(ReasoningPart),
    /// A file or image put in by the user.
    File(Object),
    /// A named agent put in by the user (`@agent`).
    Agent(Object),
    /// A subagent that a command shall start.
    Subtask(Object),
    /// A tool call.
    Tool(ToolPart),
    /// A model step begins.
    StepStart(Object),
    /// A model step has ended.
    StepFinish(StepFinishPart),
    /// Files that a step changed: `{hash, files}`.
    Patch(Object),
    /// A file snapshot.
    Snapshot(Object),
    /// A model request that was tried again.
    Retry(Object),
    /// A compaction was asked for.
    Compaction(Object),
}

impl PartKind {
    /// The value of `type` on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Reasoning(_) => "reasoning",
            Self::File(_) => "file",
            Self::Agent(_) => "agent",
            Self::Subtask(_) => "subtask",
            Self::Tool(_) => "tool",
            Self::StepStart(_) => "step-start",
            Self::StepFinish(_) => "step-finish",
            Self::Patch(_) => "patch",
            Self::Snapshot(_) => "snapshot",
            Self::Retry(_) => "retry",
            Self::Compaction(_) => "compaction",
        }
    }
}

/// Text of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Made by the program, not typed by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<bool>,
    /// Shown to the user, not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<bool>,
    /// When it streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<PartTime>,
    /// Keys that a plugin or provider added.
    #[serde(flatten)]
    pub extra: Object,
}

/// Reasoning of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningPart {
    /// The text.
    pub text: String,
    /// When it streamed.
    pub time: PartTime,
    /// What the provider wants back with it (signatures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// The end of a model step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFinishPart {
    /// Why the model stopped.
    pub reason: String,
    /// Hash of the file snapshot after the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Tokens of the step.
    pub tokens: Tokens,
    /// Price of the step in US dollars.
    pub cost: f64,
}

/// A tool call and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPart {
    /// The call.
    #[serde(rename = "callID")]
    pub call_id: CallId,
    /// Name of the tool.
    pub tool: String,
    /// How far it is.
    pub state: ToolState,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Who caused it, where that was not the user and the model alone. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Provenance::is_plain")]
    pub provenance: Provenance,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// The states of a tool call. `Completed` and `Error` are final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ToolState {
    /// The model is still writing the arguments.
    Pending {
        /// Always `{}`.
        input: Value,
        /// The arguments as far as they have come.
        raw: String,
    },
    /// The tool runs.
    Running {
        /// Arguments.
        input: Value,
        /// What the tool says of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What the tool reports while it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Begun.
        time: PartTime,
    },
    /// The tool has answered.
    Completed {
        /// Arguments.
        input: Value,
        /// What the model reads.
        output: String,
        /// What people read.
        title: String,
        /// Structured result.
        metadata: Value,
        /// Begun and ended.
        time: PartTime,
        /// Files for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<Value>>,
    },
    /// The tool has failed.
    Error {
        /// Arguments.
        input: Value,
        /// What the model reads.
        error: String,
        /// Structured result so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Begun and ended.
        time: PartTime,
    },
}

impl ToolState {
    /// Nothing will change any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Error { .. })
    }
    /// The arguments.
    #[must_use]
    pub fn input(&self) -> &Value {
        match self {
            Self::Pending { input, .. }
            | Self::Running { input, .. }
            | Self::Completed { input, .. }
            | Self::Error { input, .. } => input,
        }
    }
}

/// A message with its parts, as the API and hooks carry it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageWithParts {
    /// The message.
    pub info: MessageInfo,
    /// Its parts in order.
    pub parts: Vec<Part>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_keep_opencode_form_and_unknown_keys() {
        let wire = json!({"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"tool","callID":"call_1","tool":"read",
            "state":{"status":"running","input":{"filePath":"/a"},"time":{"start":1}},"fromPlugin":true});
        let part: Part = serde_json::from_value(wire.clone()).unwrap();
        assert!(matches!(&part.kind, PartKind::Tool(t) if !t.state.is_final()));
        assert_eq!(serde_json::to_value(&part).unwrap(), wire);
    }

    #[test]
    fn messages_are_distinguished_by_role() {
        let wire = json!({"role":"user","id":"msg_1","sessionID":"ses_1","time":{"created":5},"agent":"build",
            "model":{"providerID":"p","modelID":"m"},"variant":"high"});
        let info: MessageInfo = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(info.role(), "user");
        assert_eq!(serde_json::to_value(&info).unwrap(), wire);
    }

    #[test]
    fn a_model_is_named_by_provider_and_model() {
        for (text, want) in [
            ("a/b", Some(("a", "b"))),
            ("a/b/c", Some(("a", "b/c"))),
            ("a", None),
            ("/b", None),
            ("a/", None),
        ] {
            let got = ModelRef::parse(text);
            assert_eq!(
                got.as_ref()
                    .map(|m| (m.provider_id.as_str(), m.model_id.as_str())),
                want,
                "{text}"
            );
        }
    }
}
