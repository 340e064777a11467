//! Sessions, projects and todo lists.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::message::Tokens;
use crate::conversation::permission::Rule;
use crate::id::{MessageId, PartId, PluginId, SessionId};
use crate::records::provenance::Provenance;
use crate::tagged::tagged;
use crate::{Millis, Object};

/// A conversation, as in the API's `Session`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Identifier.
    pub id: SessionId,
    /// Three words to name it by.
    pub slug: String,
    /// Project that it belongs to.
    #[serde(rename = "projectID")]
    pub project_id: String,
    /// Working directory, absolute.
    pub directory: String,
    /// Working directory relative to the project's root.
    pub path: String,
    /// The session whose agent started this one.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// The workspace that a client created it for. Workspaces do not exist here: the value is kept and returned unchanged.
    #[serde(
        default,
        rename = "workspaceID",
        skip_serializing_if = "Option::is_none"
    )]
    pub workspace_id: Option<String>,
    /// Title: first a placeholder with the time, then from the model.
    pub title: String,
    /// Agent used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Model used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<SessionModel>,
    /// Version of the program that created it.
    pub version: String,
    /// Counts of changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// Cost so far in US dollars.
    pub cost: f64,
    /// Tokens so far.
    pub tokens: Tokens,
    /// Rules of this session, which follow those of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// The rules of `permission` that plugins set. Not a key of OpenCode.
    #[serde(default, rename = "pluginRules", skip_serializing_if = "Vec::is_empty")]
    pub plugin_rules: Vec<PluginRule>,
    /// Data of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// Messages from here on are reverted, until the next prompt removes them or they are restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<SessionRevert>,
    /// When it was created and last used.
    pub time: SessionTime,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub extra: Object,
}

/// A rule of a session, and the plugin that gave it. It holds as long as it lifts nothing that the user denies or asks about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginRule {
    /// The plugin; of one that a plugin brings, both.
    pub plugin: PluginId,
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
}

impl PluginRule {
    /// Returns `rules`, each with the plugin that gives it.
    pub fn each(plugin: &PluginId, rules: &[Rule]) -> impl Iterator<Item = Self> {
        rules.iter().map(|rule| Self {
            plugin: plugin.clone(),
            rule: rule.clone(),
        })
    }
}

/// Model of a session. Note `id`, where messages have `modelID`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionModel {
    /// Model.
    pub id: String,
    /// Provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Named set of options; `default` when none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// Lines and files that a session changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Files touched.
    pub files: u64,
}

/// The reverted part of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRevert {
    /// The first reverted message; with a part, the message is kept up to that part.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The first reverted part.
    #[serde(default, rename = "partID", skip_serializing_if = "Option::is_none")]
    pub part_id: Option<PartId>,
    /// Snapshot of the files before, to restore them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The changes of the files by the revert, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Times of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTime {
    /// Created.
    pub created: Millis,
    /// Last used.
    pub updated: Millis,
    /// Start of a compaction in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacting: Option<Millis>,
    /// Archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<Millis>,
}

/// The status of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SessionStatus {
    /// Idle.
    Idle,
    /// A turn runs.
    Busy,
    /// A model request failed and will be sent again.
    Retry {
        /// The number of the next attempt, from 1.
        attempt: u32,
        /// The reason.
        message: String,
        /// The time of the next attempt.
        next: Millis,
    },
}

/// A folder under version control, or any folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Project {
    /// First commit of the repository, or `global`.
    pub id: String,
    /// Root folder, absolute.
    pub worktree: String,
    /// `git` or absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<String>,
    /// Name that a client gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Icon that a client gave it: `{url?, override?, color?}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<Object>,
    /// Commands that a client gave it: `{start?}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Object>,
    /// When it was first and last seen.
    pub time: Value,
    /// Sandboxes of the project; none here.
    #[serde(default)]
    pub sandboxes: Vec<Value>,
}

/// One line of the todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What to do.
    pub content: String,
    /// `pending`, `in_progress`, `completed`, `cancelled`.
    pub status: String,
    /// `high`, `medium`, `low`.
    pub priority: String,
}

/// A part of a prompt, before it has identifiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartInput {
    /// Identifier, if the client chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<PartId>,
    /// Kind and contents.
    #[serde(flatten)]
    pub kind: crate::conversation::message::PartKind,
}

/// The format of the answer to a prompt.
#[tagged("type")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Plain text.
    Text,
    /// A value of this JSON Schema, which the model passes as arguments of the tool [`OutputFormat::TOOL`].
    JsonSchema {
        /// The schema.
        schema: Object,
        /// How often the model is asked again for a valid value; default: 2, as in OpenCode.
        #[serde(default = "two", rename = "retryCount")]
        retry_count: u32,
    },
}

const fn two() -> u32 {
    2
}

impl OutputFormat {
    /// The tool for structured answers, under OpenCode's name. Offered only for such a prompt.
    pub const TOOL: &str = "StructuredOutput";

    /// Returns the schema of the answer, without the `$schema` key, which not every provider accepts. `None` for text.
    #[must_use]
    pub fn schema(&self) -> Option<Value> {
        match self {
            Self::Text => None,
            Self::JsonSchema { schema, .. } => {
                let mut schema = schema.clone();
                schema.remove("$schema");
                Some(Value::Object(schema))
            }
        }
    }
}

/// A prompt, as in `POST /session/{id}/message`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PromptInput {
    /// Identifier of the user message, if the client chose one.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// Model; default: that of the agent, the session, the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<crate::conversation::message::ModelRef>,
    /// Agent; default: the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Named set of model options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Another vendor's agent that answers instead of the model: `claude`, `codex`, `gemini`, `acp:COMMAND`. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Stores the message without calling the model.
    #[serde(default, rename = "noReply", skip_serializing_if = "Option::is_none")]
    pub no_reply: Option<bool>,
    /// System text for this prompt only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tools switched on or off for this prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Object>,
    /// The format of the answer; default: text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// Its parts.
    #[serde(default)]
    pub parts: Vec<PartInput>,
    /// Who sent it: set by the server, not read from the request.
    #[serde(skip)]
    pub provenance: Provenance,
}

impl PromptInput {
    /// Creates a prompt without parts, with the agent and the model of a conversation.
    #[must_use]
    pub fn for_conversation(
        agent: Option<&String>,
        model: Option<&crate::conversation::message::ModelRef>,
    ) -> Self {
        Self {
            agent: agent.cloned(),
            model: model.cloned(),
            ..Self::default()
        }
    }
}
