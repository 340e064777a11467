//! Questions that the model puts to the user (tool `question`).

use serde::{Deserialize, Serialize};

use crate::Object;
use crate::conversation::permission::ToolRef;
use crate::id::{QuestionId, SessionId};

/// One question with what can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The question, whole.
    pub question: String,
    /// A few words, for a tab or a title.
    pub header: String,
    /// What can be chosen.
    #[serde(default)]
    pub options: Vec<Choice>,
    /// More than one may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple: Option<bool>,
    /// An answer of one's own may be typed; absent means yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
    /// What an empty answer stands for; where it is empty itself, for nothing. Absent: an empty answer is none. Not a key of
    /// OpenCode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Keys that the model added.
    #[serde(flatten)]
    pub extra: Object,
}

/// Something that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// What is shown, and what the answer says when it is chosen.
    pub label: String,
    /// What it means.
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
    /// What is asked.
    pub questions: Vec<Question>,
    /// The call that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}
