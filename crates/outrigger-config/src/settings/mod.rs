//! Our own settings: `outrigger.toml` and `OUTRIGGER_*`.
//!
//! They never stand in opencode.json, which OpenCode must be able to read. Files, lowest precedence first:
//! `$XDG_CONFIG_HOME/outrigger/outrigger.toml`, `outrigger.toml` of the worktree's root, of the working directory, then
//! `.outrigger/outrigger.toml` of both; the environment is above all files. Every key stands in one table
//! ([`keys`]), from which the files, the environment and the suggestions are read.

pub mod hands;
mod js;
pub mod keys;
mod kind;
mod plugin;
mod read;
mod toml_file;

use crate::policy::forbid::Forbid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use js::{Environment, Install, Js, JsRuntime};
pub use plugin::{ChatMessage, Isolation, Plugin};
pub(crate) use read::load;

/// All settings, with their defaults where nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Whether plugins and tools run in the box of `outrigger-sandbox`.
    pub sandbox: Sandbox,
    /// A plugin that does not load is an error and not only a line in a list (`--strict-plugins`).
    pub strict_plugins: bool,
    /// Which plugins are trusted.
    pub trust: Trust,
    /// Where plugins with a manifest are looked for, and which of them run.
    pub discovery: Discovery,
    /// The connector to Telegram.
    pub telegram: Telegram,
    /// JavaScript runtimes.
    pub js: Js,
    /// Per plugin, by the plugin's id. See [`Settings::plugin`].
    pub plugins: BTreeMap<String, Plugin>,
    /// Deadline classes of hooks.
    pub deadlines: Deadlines,
    /// Model requests.
    pub models: Models,
    /// Bundled tools.
    pub tools: Tools,
    /// The turn.
    pub agent: Agent,
    /// What goes to the log.
    pub log: Log,
    /// What plugin processes may use.
    pub limits: Limits,
    /// Parts that can be switched off.
    pub flags: Flags,
    /// Formats of Claude Code.
    pub claude: Claude,
    /// The audit.
    pub audit: Audit,
    /// What plugins connect to.
    pub network: Network,
    /// What the policy of the machine forbids everybody. No setting: only a policy says it.
    #[serde(skip)]
    pub forbid: Forbid,
    /// Plugins that guard something by the word of the user or of the policy, by the names that they have there: what a
    /// project says about them does not count.
    #[serde(skip)]
    pub guards: BTreeSet<String>,
    /// Plugins that a project has settings for, with those that they have without it.
    #[serde(skip)]
    pub without_project: BTreeMap<String, Plugin>,
    /// Who does what tools do, and within what.
    #[serde(flatten)]
    pub hands: hands::Hands,
}

/// `[network]`: what plugins connect to (issue 5, item 5). A project cannot set any of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Hosts and addresses of this machine or of private networks that every plugin may connect to.
    pub allow: Vec<String>,
}

/// `[audit]`: how much of it is kept (C13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// So many records.
    pub keep_records: u64,
    /// So many days.
    pub keep_days: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            keep_records: 200_000,
            keep_days: 90,
        }
    }
}

/// `[discovery]`: which plugins with a manifest, and which of the bundled ones, run (D1, D3, D5). A project cannot set any of
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// Which of the bundled plugins run.
    pub profile: PluginProfile,
    /// More folders to look in.
    pub paths: Vec<PathBuf>,
    /// Plugins that may run although their manifest says that they change things outside of the session, by id.
    pub allow: Vec<String>,
    /// Plugins that do not run, bundled ones too, by id; `*` stands for any run of characters.
    pub deny: Vec<String>,
    /// How often a server looks whether other plugins should run now, in seconds; 0: never.
    pub renew_seconds: u64,
}

impl Default for Discovery {
    fn default() -> Self {
        Self {
            profile: PluginProfile::default(),
            paths: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            renew_seconds: 10,
        }
    }
}

/// `[telegram]`: the connector to Telegram (D5). A project cannot set any of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Telegram {
    /// Chats whose messages are prompts, by number.
    pub chats: Vec<i64>,
    /// The agent that prompts are for; the default one if none is named.
    pub agent: Option<String>,
    /// Address of the Bot API.
    pub api: String,
}

impl Default for Telegram {
    fn default() -> Self {
        Self {
            chats: Vec::new(),
            agent: None,
            api: "https://api.telegram.org".to_owned(),
        }
    }
}

/// `discovery.profile` (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PluginProfile {
    /// All bundled plugins but `telegram` and `mcp`.
    #[default]
    Minimal,
    /// `telegram` too.
    Messaging,
    /// `mcp` too.
    Full,
}

/// `sandbox`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// On.
    #[default]
    On,
    /// Off: plugins may do what the user may do, and rules hold for tools only, not for the processes they start.
    Off,
    /// On, and where the system cannot enforce all of it, nothing is started.
    Strict,
}

/// `[trust]`: which plugins are started (issue 5, trust by content). A project cannot set any of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trust {
    /// What is done about the plugins that a project brings.
    pub projects: TrustProjects,
    /// What is done about a plugin that is not as it was trusted.
    pub changes: TrustChanges,
    /// Plugins that everybody may change are started all the same, for file systems that know no rights.
    pub world_writable: bool,
}

/// `trust.projects`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustProjects {
    /// Those that are there when a project is first used are trusted; what comes later is asked for.
    #[default]
    Trust,
    /// Each is asked for.
    Ask,
    /// None is started, but for those that were trusted before.
    Deny,
}

/// `trust.changes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustChanges {
    /// It is trusted as it is now, without a question: for those who write plugins.
    Allow,
    /// A person is asked; where there is none, it is not started.
    #[default]
    Ask,
}

/// `tools.sandbox`: what shell commands of the model may touch (issue 5). What a `deny` rule names is kept from them in
/// each of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// All that the user may.
    Full,
    /// Everything but secrets of the home folder may be read; the project, caches and a temporary folder of their own may be
    /// changed.
    #[default]
    WorkspaceWrite,
    /// The same may be read; only a temporary folder of their own may be changed.
    ReadOnly,
}

/// `[deadlines]`, in milliseconds (C5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlines {
    /// Pure policy hooks.
    pub fast_ms: u64,
    /// Hooks of JavaScript plugins.
    pub normal_ms: u64,
    /// Loading a plugin.
    pub load_ms: u64,
    /// Authentication.
    pub slow_ms: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            fast_ms: 500,
            normal_ms: 5_000,
            load_ms: 10_000,
            slow_ms: 30_000,
        }
    }
}

/// `[models]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Models {
    /// Longest wait for the first byte of an answer, in milliseconds.
    pub first_byte_ms: u64,
    /// Longest pause within an answer, in milliseconds.
    pub idle_ms: u64,
    /// Longest time for a whole answer, in milliseconds.
    pub total_ms: u64,
    /// How often a failed request is sent again.
    pub max_retries: u32,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            first_byte_ms: 120_000,
            idle_ms: 120_000,
            total_ms: 1_800_000,
            max_retries: 5,
        }
    }
}

/// `[tools]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tools {
    /// Bytes of output that the model is given; the rest goes to a file. The reference's limit.
    pub output_bytes: u64,
    /// Lines of output that the model is given. The reference's limit.
    pub output_lines: u64,
    /// Time limit of a shell command that sets none, in milliseconds. The reference's.
    pub bash_timeout_ms: u64,
    /// Time in milliseconds after which the MCP servers of a session's skills are ended when nobody has used them; the next
    /// call starts them again.
    pub skill_server_idle_ms: u64,
    /// What the model's shell commands may touch.
    pub sandbox: Profile,
    /// They may connect to UNIX sockets where a rule denies paths or their profile is narrower than `full`: Docker, an SSH
    /// agent, tmux, which would do for them what they are denied.
    pub unix_sockets: bool,
    /// Hosts that shell commands may connect to (issue 5); all when unset.
    pub hosts: Option<Vec<String>>,
    /// Secrets of the home folder that commands see (issue 18).
    pub secrets: Vec<String>,
    /// More files and folders that commands may change.
    pub write: Vec<String>,
    /// Ports of this machine that they reach although other programs listen there.
    pub ports: Vec<u16>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            output_bytes: 51_200,
            output_lines: 2_000,
            bash_timeout_ms: 120_000,
            skill_server_idle_ms: 300_000,
            sandbox: Profile::default(),
            unix_sockets: false,
            hosts: None,
            secrets: Vec::new(),
            write: Vec::new(),
            ports: Vec::new(),
        }
    }
}

/// `[agent]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agent {
    /// Most steps of a turn; 200 when unset. An agent's own `steps` counts first.
    pub max_steps: Option<u64>,
    /// How often in a row hooks may keep a turn from ending (`agent_end.before_stop`, C16); 10 when unset.
    pub max_continuations: Option<u64>,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Level at which a plugin's stderr is logged (A9): `error`, `warn`, `info`, `debug`, `trace` or `off`.
    pub plugin_stderr_level: String,
    /// Most lines a second of one plugin's stderr (A9).
    pub plugin_stderr_lines_per_second: u64,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            plugin_stderr_level: "warn".into(),
            plugin_stderr_lines_per_second: 50,
        }
    }
}

/// `[limits]`: what one plugin process may use, with everything it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Most resident memory in MiB; at eight times as much private memory, allocations fail in it.
    pub plugin_memory_mb: u64,
    /// Most processes.
    pub plugin_processes: u64,
    /// Most open files of each process.
    pub plugin_open_files: u64,
    /// How often it is asked whether it answers, in seconds; 0: never (C7).
    pub plugin_health_seconds: u64,
    /// Largest payload of a hook that is sent inline, in bytes; a larger one goes by file (A10).
    pub plugin_inline_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            plugin_memory_mb: 2048,
            plugin_processes: 128,
            plugin_open_files: 4096,
            plugin_health_seconds: 30,
            plugin_inline_bytes: 64 * 1024,
        }
    }
}

/// `[claude]`: what of Claude Code's formats is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claude {
    /// Read the project's `.mcp.json`. Each of its servers still has to be allowed.
    pub mcp: bool,
    /// Read `.claude/commands`.
    pub commands: bool,
    /// Run the command hooks of `.claude/settings.json`. Those of a project still have to be allowed.
    pub hooks: bool,
    /// Folders of Claude Code plugins, or their `hooks.json` files. Their hooks have to be allowed, too.
    pub plugins: Vec<PathBuf>,
}

impl Default for Claude {
    fn default() -> Self {
        Self {
            mcp: true,
            commands: true,
            hooks: true,
            plugins: Vec::new(),
        }
    }
}

/// `[flags]`, all on by default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// Calling every hook one after another. Off: those that can change nothing may run at the same time, the others never
    /// (A12).
    pub plugin_seq_hooks: bool,
    /// Restarting a plugin process after a timeout (A7).
    pub plugin_timeout_self_heal: bool,
    /// Skipping hooks that keep timing out (A8).
    pub plugin_circuit_breaker: bool,
    /// Handing large payloads to plugins by file (A10).
    pub plugin_large_payload_file_ipc: bool,
    /// Plugin processes keep the messages of sessions, and calls carry what changed (A14).
    pub plugin_message_mirror: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            plugin_seq_hooks: true,
            plugin_timeout_self_heal: true,
            plugin_circuit_breaker: true,
            plugin_large_payload_file_ipc: true,
            plugin_message_mirror: true,
        }
    }
}

impl Settings {
    /// The settings of a plugin, defaults when it has none.
    pub fn plugin(&self, id: &str) -> Plugin {
        self.plugins.get(id).cloned().unwrap_or_default()
    }

    /// Every setting by its dotted name, in the order of the sections; unset ones are null.
    pub fn list(&self) -> Vec<(String, Value)> {
        let mut out = Vec::new();
        let value = serde_json::to_value(self).unwrap_or_default();
        flatten(&value, "", &mut out);
        out
    }
}

fn flatten(value: &Value, name: &str, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
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
