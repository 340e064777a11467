//! Questions of the model to the user (tool `question`).

use serde::{Deserialize, Serialize};

use crate::Object;
use crate::conversation::permission::ToolRef;
use crate::id::{QuestionId, SessionId};

/// One question with its choices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The full question.
    pub question: String,
    /// A few words, for a tab or a title.
    pub header: String,
    /// The choices.
    #[serde(default)]
    pub options: Vec<Choice>,
    /// Several choices are possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// Free text is possible; default: yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
    /// The meaning of an empty answer; an empty text means no answer. Absent: an empty answer is invalid. Not a key of
    /// OpenCode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Keys that the model added.
    #[serde(flatten)]
    pub extra: Object,
}

/// A choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The displayed text, which is also the answer.
    pub label: String,
    /// Its meaning.
    #[serde(default)]
    pub description: String,
    /// Keys that the model added.
    #[serde(flatten)]
    pub extra: Object,
}

/// Chosen labels and typed text, for one question.
pub type Answer = Vec<String>;

/// Questions that wait for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuestionRequest {
    /// Identifier.
    pub id: QuestionId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The questions.
    pub questions: Vec<Question>,
    /// The call that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}
