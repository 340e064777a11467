//! Typed view of the merged document for the rest of the program.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_protocol::Object;
use outrigger_protocol::permission::Rule;
use outrigger_schema::whole;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::opencode::check;
use crate::opencode::normalize;
use crate::opencode::permission;
use crate::origin::{Positions, remove};
use crate::{ConfigError, ConfigProblem};
use outrigger_schema::child;

/// The configuration. A key that is not set is `None` or empty; its users define the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenCodeConfig {
    /// `provider/model`.
    pub model: Option<String>,
    /// `provider/model` for titles and the like.
    pub small_model: Option<String>,
    /// Agent to start with.
    pub default_agent: Option<String>,
    /// Providers as written; the models crate reads them.
    pub provider: Object,
    /// Providers that are never used.
    pub disabled_providers: Vec<String>,
    /// If set, only these providers are used.
    pub enabled_providers: Option<Vec<String>>,
    /// Agents in the document's order.
    pub agent: Vec<AgentEntry>,
    /// Commands in the document's order.
    pub command: Vec<CommandEntry>,
    /// Rules for every agent, those of `tools` first; the last match decides.
    pub permission: Vec<Rule>,
    /// Tools by name or pattern, switched on or off; already part of `permission`.
    pub tools: BTreeMap<String, bool>,
    /// MCP servers as written.
    pub mcp: Object,
    /// Plugins as in the document. [`crate::Loaded::plugins`] is the list to load.
    pub plugin: Vec<Value>,
    /// Files and URLs with instructions, as written.
    pub instructions: Vec<String>,
    /// How to call the user.
    pub username: Option<String>,
    /// Whether to keep snapshots of the project's files.
    pub snapshot: Option<bool>,
    /// `manual`, `auto` or `disabled`.
    pub share: Option<String>,
    /// `true`, `false` or `"notify"`.
    pub autoupdate: Option<Value>,
    /// Shell for the bash tool.
    pub shell: Option<String>,
    /// How deep subagents may start subagents.
    pub subagent_depth: Option<u64>,
    /// `skills.paths`: more folders with skills.
    pub skill_paths: Vec<String>,
    /// `skills.urls`: URLs with an index of skills.
    pub skill_urls: Vec<String>,
    /// When and how to compact.
    pub compaction: Compaction,
    /// `tool_output.max_lines`.
    pub output_max_lines: Option<u64>,
    /// `tool_output.max_bytes`.
    pub output_max_bytes: Option<u64>,
    /// As written.
    pub experimental: Object,
    /// `true`, `false` or an object.
    pub formatter: Option<Value>,
    /// `true`, `false` or an object.
    pub lsp: Option<Value>,
    /// All other keys, known or not.
    pub extra: Object,
}

/// `compaction`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Whether to compact when the context is full.
    pub auto: Option<bool>,
    /// Whether to drop old tool output.
    pub prune: Option<bool>,
    /// Turns that are kept as they are.
    pub tail_turns: Option<u64>,
    /// Tokens of recent messages that are kept.
    pub preserve_recent_tokens: Option<u64>,
    /// Tokens of the context window kept free for the compaction itself.
    pub reserved: Option<u64>,
}

/// One agent of the document: a new one, or changes to a built-in one of the same name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentEntry {
    /// Its key in the document.
    pub name: String,
    /// `provider/model`.
    pub model: Option<String>,
    /// Named set of model options.
    pub variant: Option<String>,
    /// System prompt.
    pub prompt: Option<String>,
    /// When to use it.
    pub description: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// How it may be used; a new agent without one is `all`.
    pub mode: Option<AgentMode>,
    /// Not offered for selection.
    pub hidden: Option<bool>,
    /// Removed.
    pub disable: bool,
    /// Tools switched on or off; already part of `permission`.
    pub tools: BTreeMap<String, bool>,
    /// Its rules, those of its `tools` first; they follow those for every agent.
    pub permission: Vec<Rule>,
    /// Maximum steps of a turn (`steps`, else `maxSteps`).
    pub steps: Option<u64>,
    /// Options for the model's provider, merged over those of the model.
    pub options: Object,
    /// `#rrggbb` or the name of a theme color.
    pub color: Option<String>,
    /// Where it stands among the agents, smallest first; set by plugins.
    pub order: Option<f64>,
}

/// How an agent may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    /// By the user.
    Primary,
    /// By another agent.
    Subagent,
    /// Both.
    #[default]
    All,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandEntry {
    /// Its key in the document.
    pub name: String,
    /// The prompt, with `$ARGUMENTS`, `$1`, `@file` and `` !`shell` `` in it.
    pub template: String,
    /// Description for the list of commands.
    pub description: Option<String>,
    /// Agent that runs it.
    pub agent: Option<String>,
    /// `provider/model`.
    pub model: Option<String>,
    /// Named set of model options.
    pub variant: Option<String>,
    /// Whether it runs as a subtask; unset: if its agent is a subagent.
    pub subtask: Option<bool>,
}

impl OpenCodeConfig {
    /// Reads a merged document. `home` stands for `~/` and `$HOME` in permission patterns.
    ///
    /// # Errors
    /// `config.type` for the first known key whose value has the wrong type.
    pub fn from_value(value: Value, home: &Path) -> Result<Self, ConfigError> {
        match check::document(&value).into_iter().next() {
            Some(wrong) => Err(wrong.error("merged configuration", &Positions::new())),
            None => Ok(Self::read(value, home)),
        }
    }

    /// Reads a document that `config` hooks have changed. A value of the wrong type is skipped and reported, so that
    /// one plugin's mistake does not fail the session.
    pub fn from_value_leniently(mut value: Value, home: &Path) -> (Self, Vec<ConfigProblem>) {
        let wrong = check::document(&value);
        // From the last to the first, so that removing from a list does not shift later removals.
        for mismatch in wrong.iter().rev() {
            if mismatch.pointer.is_empty() {
                value = Value::Object(Map::new());
            }
            remove(&mut value, &mismatch.pointer);
        }
        (
            Self::read(value, home),
            wrong
                .into_iter()
                .map(|mismatch| mismatch.problem("config hook"))
                .collect(),
        )
    }

    /// Returns the entry of an agent.
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.agent.iter().find(|entry| entry.name == name)
    }

    /// Returns the entry of a command.
    pub fn command(&self, name: &str) -> Option<&CommandEntry> {
        self.command.iter().find(|entry| entry.name == name)
    }

    fn read(value: Value, home: &Path) -> Self {
        let mut map = into_object(Some(value));
        let mut skills = object(&mut map, "skills");
        let mut output = object(&mut map, "tool_output");
        let mut compaction = object(&mut map, "compaction");
        let tools = object(&mut map, "tools");
        Self {
            model: text(&mut map, "model"),
            small_model: text(&mut map, "small_model"),
            default_agent: text(&mut map, "default_agent"),
            provider: object(&mut map, "provider"),
            disabled_providers: texts(&mut map, "disabled_providers").unwrap_or_default(),
            enabled_providers: texts(&mut map, "enabled_providers"),
            agent: object(&mut map, "agent")
                .into_iter()
                .map(|(name, entry)| agent(name, entry, home))
                .collect(),
            command: object(&mut map, "command")
                .into_iter()
                .map(|(name, entry)| command(name, entry))
                .collect(),
            permission: rules(&tools, map.shift_remove("permission"), home),
            tools: booleans(&tools),
            mcp: object(&mut map, "mcp"),
            plugin: match map.shift_remove("plugin") {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            },
            instructions: texts(&mut map, "instructions").unwrap_or_default(),
            username: text(&mut map, "username"),
            snapshot: boolean(&mut map, "snapshot"),
            share: text(&mut map, "share"),
            autoupdate: map.shift_remove("autoupdate"),
            shell: text(&mut map, "shell").filter(|shell| !shell.is_empty()),
            subagent_depth: number(&mut map, "subagent_depth"),
            skill_paths: texts(&mut skills, "paths").unwrap_or_default(),
            skill_urls: texts(&mut skills, "urls").unwrap_or_default(),
            compaction: Compaction {
                auto: boolean(&mut compaction, "auto"),
                prune: boolean(&mut compaction, "prune"),
                tail_turns: number(&mut compaction, "tail_turns"),
                preserve_recent_tokens: number(&mut compaction, "preserve_recent_tokens"),
                reserved: number(&mut compaction, "reserved"),
            },
            output_max_lines: number(&mut output, "max_lines"),
            output_max_bytes: number(&mut output, "max_bytes"),
            experimental: object(&mut map, "experimental"),
            formatter: map.shift_remove("formatter"),
            lsp: map.shift_remove("lsp"),
            extra: map,
        }
    }
}

/// Returns the rules of `tools` for permissions that `permission` does not mention, then those of `permission`.
fn rules(tools: &Object, own: Option<Value>, home: &Path) -> Vec<Rule> {
    let spoken = |name: &str| {
        own.as_ref()
            .and_then(Value::as_object)
            .is_some_and(|own| own.contains_key(name))
    };
    let tools: Object = permission::from_tools(tools)
        .into_iter()
        .filter(|it| !spoken(&it.permission))
        .map(|it| (it.permission, it.action))
        .collect();
    let mut rules = permission::rules(&Value::Object(tools), home);
    rules.extend(own.iter().flat_map(|own| permission::rules(own, home)));
    rules
}

fn agent(name: String, entry: Value, home: &Path) -> AgentEntry {
    let mut map = into_object(Some(entry));
    normalize::agent(
        &mut map,
        &child("/agent", &name),
        &mut Positions::new(),
        false,
    );
    AgentEntry {
        model: text(&mut map, "model"),
        variant: text(&mut map, "variant"),
        prompt: text(&mut map, "prompt"),
        description: text(&mut map, "description"),
        temperature: map.get("temperature").and_then(Value::as_f64),
        top_p: map.get("top_p").and_then(Value::as_f64),
        mode: text(&mut map, "mode").and_then(|mode| match mode.as_str() {
            "primary" => Some(AgentMode::Primary),
            "subagent" => Some(AgentMode::Subagent),
            "all" => Some(AgentMode::All),
            _ => None,
        }),
        hidden: boolean(&mut map, "hidden"),
        disable: boolean(&mut map, "disable").unwrap_or_default(),
        tools: booleans(&object(&mut map, "tools")),
        permission: map
            .get("permission")
            .map(|own| permission::rules(own, home))
            .unwrap_or_default(),
        steps: number(&mut map, "steps"),
        options: object(&mut map, "options"),
        color: text(&mut map, "color"),
        order: map.get("order").and_then(Value::as_f64),
        name,
    }
}

fn command(name: String, entry: Value) -> CommandEntry {
    let mut map = into_object(Some(entry));
    CommandEntry {
        template: text(&mut map, "template").unwrap_or_default(),
        description: text(&mut map, "description"),
        agent: text(&mut map, "agent"),
        model: text(&mut map, "model"),
        variant: text(&mut map, "variant"),
        subtask: boolean(&mut map, "subtask"),
        name,
    }
}

fn into_object(value: Option<Value>) -> Object {
    match value {
        Some(Value::Object(map)) => map,
        _ => Object::new(),
    }
}

fn object(map: &mut Object, key: &str) -> Object {
    into_object(map.shift_remove(key))
}

fn text(map: &mut Object, key: &str) -> Option<String> {
    match map.shift_remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn texts(map: &mut Object, key: &str) -> Option<Vec<String>> {
    let Some(Value::Array(list)) = map.shift_remove(key) else {
        return None;
    };
    Some(
        list.into_iter()
            .filter_map(|item| item.as_str().map(str::to_owned))
            .collect(),
    )
}

fn boolean(map: &mut Object, key: &str) -> Option<bool> {
    map.shift_remove(key).and_then(|value| value.as_bool())
}

fn number(map: &mut Object, key: &str) -> Option<u64> {
    map.shift_remove(key).as_ref().and_then(whole)
}

fn booleans(map: &Object) -> BTreeMap<String, bool> {
    map.iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_bool()?)))
        .collect()
}
