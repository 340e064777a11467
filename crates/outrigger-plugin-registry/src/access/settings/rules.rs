//! Rules for single plugins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::settings::{ChatMessage, Isolation};
use outrigger_config::{PluginScope, PluginSpec};
use outrigger_sandbox::paths::resolve;

use crate::access::grants_in_words::UserGrants;
use crate::access::rights::Access;

/// Rules for one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginRules {
    /// Not loaded at all.
    pub disabled: bool,
    /// Disabled by the project's own file, which applies to the project's plugins.
    pub disabled_in_project: bool,
    /// Whether it may share a process.
    pub isolation: Isolation,
    /// Higher runs first (A6, C4).
    pub priority: i32,
    /// Its security-critical hooks, in either spelling: if one throws, is late or cannot be called, what it guards is
    /// refused (C5). Such a plugin runs in its own process.
    pub fail_closed: Vec<String>,
    /// Hooks that the machine policy requires of it (also in `fail_closed`).
    pub required: Vec<String>,
    /// `chat.message` is called for completed assistant messages instead of user messages (A4, `chat_message`).
    pub completed_messages: bool,
    /// Deadline of its hooks, whatever their class.
    pub hook_deadline: Option<Duration>,
    /// Environment variables that it gets although they look like secrets; it then runs in its own process.
    pub env: Vec<String>,
    /// TCP ports that it may listen on; it then runs in its own process.
    pub ports: Vec<u16>,
    /// It may create UNIX sockets. Such a plugin runs in its own process.
    pub unix_sockets: bool,
    /// It may approve what the user would be asked about. Such a plugin runs in its own process.
    pub approve: bool,
    /// Its changes of a tool call's arguments need no approval.
    pub rewrite: bool,
    /// Tool calls of a model that it implements run by the user's rules without individual approval.
    pub model: bool,
    /// Tool calls of turns that it starts run by the user's rules without individual approval.
    pub prompt: bool,
    /// Files and folders outside of the project that it may read; they give it a process of its own.
    pub read: Vec<PathBuf>,
    /// Files and folders outside of the project that it may read and change; as above.
    pub write: Vec<PathBuf>,
    /// Programs that it may run, by name or path; `None`: all. Such a plugin runs in its own process.
    pub processes: Option<Vec<String>>,
    /// Hosts that it may connect to; `None`: every public one. Such a plugin runs in its own process.
    pub hosts: Option<Vec<String>>,
    /// It merely has the name for which [`PluginRules::hosts`] are set: addresses among them are ignored.
    pub hosts_withheld: bool,
    /// Maximum run time of its hooks, from its manifest.
    pub max_timeout: Option<Duration>,
    /// Its access, if it has a manifest. Such a plugin runs in its own process.
    pub access: Option<Access>,
    /// What of this the user's settings grant to this plugin, as they say it, and what they grant to another of its name.
    pub user_grants: UserGrants,
}

impl PluginRules {
    /// Returns whether it is switched off by someone who may.
    #[must_use]
    pub fn is_off(&self, declared: &PluginSpec) -> bool {
        self.disabled || self.disabled_in_project && declared.scope == PluginScope::Local
    }
}

impl From<&outrigger_config::settings::Plugin> for PluginRules {
    fn from(plugin: &outrigger_config::settings::Plugin) -> Self {
        Self {
            disabled: plugin.disabled || plugin.enabled == Some(false),
            disabled_in_project: plugin.disabled_in_project,
            isolation: plugin.isolation,
            priority: plugin.priority,
            fail_closed: plugin.fail_closed.clone(),
            required: plugin.required.clone(),
            completed_messages: plugin.chat_message == ChatMessage::Assistant,
            hook_deadline: plugin.timeout_ms.map(Duration::from_millis),
            env: plugin.env.clone(),
            ports: plugin.ports.clone(),
            unix_sockets: plugin.unix_sockets,
            approve: plugin.approve,
            rewrite: plugin.rewrite,
            model: plugin.model,
            prompt: plugin.prompt,
            hosts: plugin.hosts.clone(),
            read: plugin.read.iter().filter_map(|it| place(it)).collect(),
            write: plugin.write.iter().filter_map(|it| place(it)).collect(),
            processes: plugin.processes.clone(),
            ..Self::default()
        }
    }
}

/// Parses an absolute path, or one in the home folder (`~/...`).
pub fn place(text: &str) -> Option<PathBuf> {
    let path = match text.strip_prefix("~/") {
        Some(rest) => PathBuf::from(std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(text),
    };
    let whole = path.is_absolute().then(|| resolve(Path::new("/"), &path));
    if whole.is_none() {
        tracing::warn!("{text} is granted to no plugin: it is not an absolute path");
    }
    whole
}
