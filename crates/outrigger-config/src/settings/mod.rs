//! Outrigger's own settings: `outrigger.toml` and `OUTRIGGER_*`.
//!
//! They are never in opencode.json, which OpenCode must be able to read. Files, lowest precedence first:
//! `$XDG_CONFIG_HOME/outrigger/outrigger.toml`, `outrigger.toml` of the worktree's root, of the working directory, then
//! `.outrigger/outrigger.toml` of both; the environment overrides all files. Every setting is a row of one table
//! ([`sections`]); [`tool_execution`] has the sections whose names the user chooses.

mod choices;
pub mod keys;
mod read;
pub mod sections;
mod toml_file;
pub mod tool_execution;
mod values;

use crate::policy::forbid::Forbid;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

pub use choices::{
    ChatMessage, Editing, Environment, Install, Isolation, JsRuntime, PluginProfile, Profile,
    Sandbox, TrustChanges, TrustProjects, TuiColors, TuiTheme,
};
pub(crate) use read::load;
pub use sections::{
    Agent, Audit, Browser, Budget, Claude, Deadlines, Discovery, Flags, Js, Limits, Log, Models,
    Network, Plugin, Telegram, Tools, Trust, Tui,
};

/// All settings, with their defaults if nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Whether plugins and tools run in the sandbox of `outrigger-sandbox`.
    pub sandbox: Sandbox,
    /// A plugin that does not load is an error and not only a line in a list (`--strict-plugins`).
    pub strict_plugins: bool,
    /// Which plugins are trusted.
    pub trust: Trust,
    /// Roots of plugins with a manifest, and which of them run.
    pub discovery: Discovery,
    /// The connector to Telegram.
    pub telegram: Telegram,
    /// JavaScript runtimes.
    pub js: Js,
    /// Settings of plugins by id. See [`Settings::plugin`].
    pub plugins: BTreeMap<String, Plugin>,
    /// Deadline classes of hooks.
    pub deadlines: Deadlines,
    /// Model requests.
    pub models: Models,
    /// Bundled tools.
    pub tools: Tools,
    /// A browser for the model.
    pub browser: Browser,
    /// The turn.
    pub agent: Agent,
    /// `[budget]`
    pub budget: Budget,
    /// Logging.
    pub log: Log,
    /// Limits of plugin processes.
    pub limits: Limits,
    /// Features that can be switched off.
    pub flags: Flags,
    /// Formats of Claude Code.
    pub claude: Claude,
    /// The audit.
    pub audit: Audit,
    /// Network access of plugins.
    pub network: Network,
    /// The terminal interface.
    pub tui: Tui,
    /// What the machine policy forbids for everyone. Not a setting: only a policy sets it.
    #[serde(skip)]
    pub forbid: Forbid,
    /// Plugins that the user or the policy declares as guards, by the names used there: a project's settings for them
    /// are ignored.
    #[serde(skip)]
    pub guards: BTreeSet<String>,
    /// Plugins that a project has settings for, with their settings without it.
    #[serde(skip)]
    pub without_project: BTreeMap<String, Plugin>,
    /// Providers of tools, and their limits.
    #[serde(flatten)]
    pub tool_execution: tool_execution::ToolExecution,
}

impl Settings {
    /// Returns the settings of a plugin, or the defaults.
    pub fn plugin(&self, id: &str) -> Plugin {
        self.plugins.get(id).cloned().unwrap_or_default()
    }

    /// Returns every setting by its dotted name, in the order of the sections; unset ones are null.
    pub fn list(&self) -> Vec<(String, Value)> {
        let mut out = Vec::new();
        let value = serde_json::to_value(self).unwrap_or_default();
        flatten(&value, "", &mut out);
        out
    }
}

fn flatten(value: &Value, name: &str, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) if keys::find(name).is_none() => {
            for (key, member) in map {
                flatten(
                    member,
                    &if name.is_empty() {
                        key.clone()
                    } else {
                        keys::dotted(name, key)
                    },
                    out,
                );
            }
        }
        _ => out.push((name.into(), value.clone())),
    }
}
