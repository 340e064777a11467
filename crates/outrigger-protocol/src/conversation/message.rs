//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::session::OutputFormat;
use crate::id::{MessageId, SessionId};
use crate::records::provenance::Provenance;
use crate::tagged::tagged;
use crate::{Millis, Object};

pub use crate::conversation::part::{
    CacheTokens, Part, PartKind, PartTime, REFUSAL, ReasoningPart, StepFinishPart, TextPart,
    Tokens, ToolPart, ToolState,
};

/// The model of an answer.
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

/// When something was created and, for assistant messages, finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageTime {
    /// Created.
    pub created: Millis,
    /// Finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Millis>,
}

/// A message without its parts.
#[tagged("role")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageInfo {
    /// A message of the user, a command, a plugin or a parent agent.
    User(UserMessage),
    /// The model's answer in one step.
    Assistant(AssistantMessage),
}

impl MessageInfo {
    /// Returns the message's identifier.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(m) => &m.id,
            Self::Assistant(m) => &m.id,
        }
    }
    /// Returns the session it belongs to.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::User(m) => &m.session_id,
            Self::Assistant(m) => &m.session_id,
        }
    }
    /// Returns `user` or `assistant`.
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
    /// When it was created.
    pub time: MessageTime,
    /// Agent that should answer.
    pub agent: String,
    /// Model that should answer.
    pub model: ModelRef,
    /// System text for this prompt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tools switched on or off for this prompt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Object>,
    /// The format of the answer; default: text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// `{diffs: […]}`: files that the answer changed, once it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Who sent it, if not the user alone. Not a key of OpenCode.
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
    /// Its working directory and project.
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
    /// When it was created and finished.
    pub time: MessageTime,
    /// Why the model stopped: `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`, `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NamedError>,
    /// True for a summary written by compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<bool>,
    /// The structured answer, if the prompt requested one with a JSON Schema (its `format`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Plugins that sent its prompt, or changed it: they remain a cause of what reads it. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Provenance::is_plain")]
    pub provenance: Provenance,
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
    /// Creates an error with only a message.
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            data: serde_json::json!({ "message": message.into() }),
        }
    }
    /// Returns the message for the user.
    #[must_use]
    pub fn message(&self) -> &str {
        self.data
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or(&self.name)
    }
}

/// A message with its parts, as used by the API and hooks.
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
