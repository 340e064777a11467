//! Permission rules and requests.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, MessageId, PermissionId, PluginId, SessionId};
use crate::records::provenance::Provenance;

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Allowed without asking.
    Allow,
    /// The user is asked; refused if there is no user.
    Ask,
    /// Refused.
    Deny,
}

/// One rule. The last matching rule applies, as in OpenCode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Tool or permission, with `*` and `?`.
    pub permission: String,
    /// Command, path or URL, with `*` and `?`.
    pub pattern: String,
    /// The action.
    pub action: Action,
}

/// Key of [`PermissionRequest::metadata`] for the reason why a hook wants the user to be asked. Only the program sets
/// it.
pub const HOOK_REASON: &str = "hookReason";

/// Key of [`PermissionRequest::metadata`] for the call that asks: `{tool, input}`, with its final arguments. Only the
/// program sets it. Not a key of OpenCode.
pub const CALL: &str = "outriggerCall";

/// A question whether something is allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// Identifier.
    pub id: PermissionId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Its subject: `bash`, `edit`, `external_directory` …
    pub permission: String,
    /// The commands, paths or URLs in question.
    pub patterns: Vec<String>,
    /// Patterns that "always" would allow.
    pub always: Vec<String>,
    /// For display.
    pub metadata: Value,
    /// The call that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    /// Who wants it, if not only the user and the model. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Provenance::is_plain")]
    pub provenance: Provenance,
    /// The missing grant that caused the question. Not a key of OpenCode.
    #[serde(
        default,
        rename = "missingGrant",
        skip_serializing_if = "Option::is_none"
    )]
    pub missing_grant: Option<Box<MissingGrant>>,
}

/// A grant that a plugin lacks: `grant = true` under `[plugins.NAME]` of the user's own `outrigger.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingGrant {
    /// The plugin.
    pub plugin: PluginId,
    /// NAME: its npm package, or the path of its file.
    pub name: String,
    /// `approve`, `rewrite`, `model`, `prompt`.
    pub grant: String,
}

/// A reference to a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRef {
    /// Message of the call.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The call.
    #[serde(rename = "callID")]
    pub call_id: CallId,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// This time.
    Once,
    /// From now on in this project.
    Always,
    /// No.
    Reject,
}
