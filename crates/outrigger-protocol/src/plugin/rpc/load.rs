//! Loading plugins into a process, and its responses.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plugin::custom_points::ProviderDecl;
use crate::plugin::login::AuthHook;

/// First frame of a plugin process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`crate::rpc::PROTOCOL_VERSION`] of the host script.
    pub protocol: String,
    /// Optional features; unknown names are ignored.
    #[serde(default)]
    pub features: Vec<String>,
    /// `bun` or `node`.
    pub runtime: String,
    /// Version of the runtime.
    pub version: String,
}

/// Loads plugins into the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// Project folder; the process changes into it.
    pub directory: String,
    /// Project root.
    pub worktree: String,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input.
    pub server_url: String,
    /// Entry file of `@opencode-ai/sdk`, imported when a plugin first touches `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// Folder whose `node_modules` serves plugins that have no `@opencode-ai/plugin` or zod of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// Answers of hooks larger than this, in bytes, are sent by file ([`crate::plugin::transfer::FileOpen`]); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_over: Option<u64>,
    /// The proxy for connections to other hosts, with the token of this process; absent: direct connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Plugins in load order.
    pub plugins: Vec<PluginEntry>,
    /// Sources that run only as hashed.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub sources: Sources,
}

/// Code that runs only if it matches its hash. Other code runs if a plugin names it by a computed path. Paths are without links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// SHA-256 in hexadecimal digits, by path.
    pub hashes: BTreeMap<String, String>,
    /// Folders of packages. All code in them is in `hashes`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub packages: BTreeSet<String>,
    /// Paths that sources name literally but that did not exist or were something else: code that appears there does not run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unresolved: BTreeSet<String>,
    /// Folders whose code runs unchecked.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub free: BTreeSet<String>,
}

impl Sources {
    /// Returns whether nothing is checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Adds the sources of another plugin of the process.
    pub fn extend(&mut self, more: Self) {
        self.hashes.extend(more.hashes);
        self.packages.extend(more.packages);
        self.unresolved.extend(more.unresolved);
        self.free.extend(more.free);
    }
}

/// One plugin to load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginEntry {
    /// Name in lists and logs.
    pub id: String,
    /// `file://` URL of the module.
    pub entry: String,
    /// It comes from a path, so a module object must have a name.
    pub from_path: bool,
    /// Second argument of the plugin function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    /// It is a tool file (`{tool,tools}/*.{js,ts}`, B5): its default export is the tool of this name, each other export the tool
    /// `NAME_EXPORT`, as in OpenCode. Nothing in it is called before a tool runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// Another plugin hosts it: its function gets this instead of the plugin input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facade: Option<Facade>,
}

/// The argument of a hosted plugin's function (C8), besides the folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facade {
    /// Its host.
    pub host: String,
    /// Its id below the host.
    pub id: String,
    /// It may use some routes of the client.
    pub client: bool,
}

/// The result of loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Initialized {
    /// One for each entry, in order.
    pub plugins: Vec<LoadedPlugin>,
}

/// One plugin after loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadedPlugin {
    /// Name from [`PluginEntry::id`].
    pub id: String,
    /// One for each plugin function of the module that answered with hooks.
    pub instances: Vec<Instance>,
    /// Problems, with their stage (`import`, `export`, `server`).
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// Milliseconds for import and start.
    pub ms: f64,
}

/// A problem of loading a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `import`, `export`, `server`, `hooks`, `tool`; `note` for information.
    pub stage: String,
    /// What happened.
    pub message: String,
    /// It is caused by running under Node: under Bun the plugin may work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_bun: bool,
}

/// The hooks object that one plugin function returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Its export.
    pub export: String,
    /// Names of its hook functions.
    pub hooks: Vec<String>,
    /// Its tools.
    #[serde(default)]
    pub tools: Vec<PluginTool>,
    /// Names of the `auth` or `provider` objects that it contributed.
    #[serde(default)]
    pub extras: Vec<String>,
    /// Its `auth` object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthHook>,
    /// The provider whose models its `provider` object returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider that its `provider` object implements itself (`stream`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<ProviderDecl>,
}

/// A tool of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginTool {
    /// Name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Its further declaration, under `outrigger`: see [`crate::tools::descriptor::Declared`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declares: Option<Value>,
}

/// The progress of loading a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Plugin.
    pub plugin: String,
    /// `importing`, `starting`, `ready`, `failed`.
    pub stage: String,
}
