//! `outrigger.plugin.toml`: what a plugin says of itself and what it asks for (C6, D3, D6, D9).
//!
//! A manifest asks; what a plugin gets is what the user, and the policy of the machine, grant of it. The names are those of
//! both requirements, in one format: snake case, with the camel case of C6 accepted.

mod check;
mod custom_points;
mod subplugins;

use serde::{Deserialize, Serialize};

pub use custom_points::{
    Allow, DeadlineClass, EventDecl, EventExample, PointDecl, PointExample, ProviderEntry,
    ProviderExample, RESERVED_DOMAINS,
};
pub use subplugins::SubpluginDecl;

/// The name of the file in the plugin's folder.
pub const MANIFEST_FILE: &str = "outrigger.plugin.toml";

/// Ids of required bundled plugins, which no other plugin may have (D4).
pub const RESERVED_IDS: [&str; 2] = ["builtin-tools", "skill-source-local"];

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What the plugin is called: letters, digits, `-`, `_`, `.`, `/` and `@`.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: PluginKind,
    /// Module that is imported, inside the package. Without it, what `package.json` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Whether it runs by default (D9); default: true.
    #[serde(
        default,
        alias = "enabledByDefault",
        skip_serializing_if = "Option::is_none"
    )]
    pub enabled_by_default: Option<bool>,
    /// Its contributions.
    #[serde(default, alias = "capabilities")]
    pub provides: Provides,
    /// Plugins that have to be there, by id.
    #[serde(default, alias = "dependsOn", skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Requirements of the machine.
    #[serde(default)]
    pub requirements: Requirements,
    /// How its hooks are called.
    #[serde(default, alias = "hookPolicy")]
    pub hook_policy: HookPolicy,
    /// The requested permissions. Unlisted ones are not granted.
    #[serde(default)]
    pub permissions: Permissions,
    /// Its own hook points, for other plugins to subscribe to (B8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<PointDecl>,
    /// Its own bus events (B8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventDecl>,
    /// Descriptions and examples of its model providers (B8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderEntry>,
    /// The plugins that it hosts (C8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subplugins: Vec<SubpluginDecl>,
}

/// Kinds of plugins: the finer ones of D9, and those of C6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginKind {
    /// Hooks only (C6).
    #[serde(alias = "hook-plugin")]
    Hook,
    /// Contributes something (C6).
    #[serde(alias = "capability-plugin")]
    Capability,
    /// Executes elsewhere (C6, D9).
    #[serde(alias = "connector-plugin", alias = "Connector")]
    Connector,
    /// Tools (D9).
    #[serde(alias = "Toolset")]
    Toolset,
    /// Skills (D9).
    #[serde(alias = "SkillSource")]
    SkillSource,
    /// Models (D9).
    #[serde(alias = "Provider")]
    Provider,
    /// A bridge for a remote controller (D9).
    #[serde(alias = "Bridge")]
    Bridge,
}

impl PluginKind {
    /// Returns whether it contributes tools for models.
    #[must_use]
    pub fn brings_tools(self) -> bool {
        matches!(self, Self::Capability | Self::Toolset)
    }

    /// Returns whether it contributes logins and model providers.
    #[must_use]
    pub fn brings_providers(self) -> bool {
        matches!(self, Self::Capability | Self::Provider)
    }

    /// Returns whether it contributes skills.
    #[must_use]
    pub fn brings_skills(self) -> bool {
        matches!(self, Self::Capability | Self::SkillSource)
    }

    /// Returns whether it contributes executors of connectors (C6).
    #[must_use]
    pub fn brings_connectors(self) -> bool {
        matches!(self, Self::Connector | Self::Bridge)
    }

    /// Returns the name in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Capability => "capability",
            Self::Connector => "connector",
            Self::Toolset => "toolset",
            Self::SkillSource => "skill-source",
            Self::Provider => "provider",
            Self::Bridge => "bridge",
        }
    }
}

/// A plugin's contributions (D9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Provides {
    /// Names of its tools; it can register no others.
    #[serde(alias = "provides_tools", skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Names of the connectors that it executes (C6): each has a tool of that name.
    #[serde(alias = "provides_connectors", skip_serializing_if = "Vec::is_empty")]
    pub connectors: Vec<String>,
    /// Names of its providers of models.
    #[serde(alias = "provides_providers", skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    /// Folders of its package with skills.
    #[serde(
        alias = "provides_skill_sources",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub skill_sources: Vec<String>,
    /// It changes something outside of the session.
    pub has_side_effects: bool,
}

/// Requirements; if one is missing, the plugin is disabled with the reason (D3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Requirements {
    /// Variables that have to be set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Groups of variables of which one has to be set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env_any: Vec<Vec<String>>,
    /// Programs that must be on `PATH`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external_bins: Vec<String>,
}

/// How a plugin's hooks are called (C6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookPolicy {
    /// Its hooks or their points: they may do what their points allow, and others that it brings are not called. Without it
    /// all are called, and may do what C3 gives to every plugin.
    #[serde(alias = "allowedHooks", skip_serializing_if = "Option::is_none")]
    pub allowed_hooks: Option<Vec<String>>,
    /// No hook of it runs longer, in milliseconds.
    #[serde(alias = "maxTimeoutMs", skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<u64>,
    /// Higher comes first, where the user has said nothing else.
    pub priority: i32,
    /// Hooks whose failure blocks what they guard, in addition to those that the user names (C5), and which may refuse: the mark of a
    /// policy plugin (C3). Applies if the point allows refusals.
    #[serde(alias = "failClosed", skip_serializing_if = "Vec::is_empty")]
    pub fail_closed: Vec<String>,
}

/// The permissions that a plugin requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Files and folders.
    pub files: FilePermissions,
    /// The network.
    pub network: NetworkPermissions,
    /// Environment variables that are not secrets; `*` at the end stands for any rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Environment variables that are secrets. The user grants each by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Routes of the client, as `GET /session/*`. Default: all that plugins may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Vec<String>>,
    /// Programs that it runs, by name or path. Without it all, with an empty list none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<String>>,
    /// UNIX sockets. Requires a grant of the user.
    pub unix_sockets: bool,
}

/// Roots of files: `${project}`, a path below it, or a path outside (absolute, or `~/...`), which requires a grant of the user. What a
/// plugin may always read (its own folder, the system's) need not be requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilePermissions {
    /// Readable roots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Readable and writable roots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
}

/// The network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkPermissions {
    /// Hosts to connect to; without any it can open no TCP connection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// TCP ports that it listens on. The user grants them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<u16>,
}

/// A problem of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// Dotted name of the key.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Manifest {
    /// Returns whether it changes something outside the session: by its own declaration, or by what it requests, whatever it declares (D3).
    /// A list of programs counts; the absence of one does not, since the sandbox restricts what they do.
    #[must_use]
    pub fn has_side_effects(&self) -> bool {
        let asked = &self.permissions;
        self.provides.has_side_effects
            || !asked.files.write.is_empty()
            || !asked.network.hosts.is_empty()
            || !asked.network.listen.is_empty()
            || asked.processes.as_ref().is_some_and(|it| !it.is_empty())
            || asked.unix_sockets
    }

    /// Returns the implied manifest of an OpenCode plugin without one: the whole project, the network, and the user's environment without
    /// likely secrets.
    #[must_use]
    pub fn inferred(id: &str, version: Option<&str>) -> Self {
        let text = |text: &str| String::from(text);
        Self {
            id: text(id),
            version: text(version.unwrap_or("0.0.0")),
            kind: PluginKind::Capability,
            entry: None,
            enabled_by_default: None,
            provides: Provides {
                has_side_effects: true,
                ..Provides::default()
            },
            depends_on: Vec::new(),
            requirements: Requirements::default(),
            hook_policy: HookPolicy::default(),
            permissions: Permissions {
                files: FilePermissions {
                    read: Vec::new(),
                    write: [text("${project}")].into(),
                },
                network: NetworkPermissions {
                    hosts: [text("*")].into(),
                    listen: Vec::new(),
                },
                env: [text("*")].into(),
                ..Permissions::default()
            },
            points: Vec::new(),
            events: Vec::new(),
            providers: Vec::new(),
            subplugins: Vec::new(),
        }
    }
}
