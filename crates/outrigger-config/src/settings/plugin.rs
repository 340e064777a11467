//! `[plugins.<id>]`: the user's settings for one plugin.

use serde::Serialize;

/// `[plugins.<id>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plugin {
    /// Whether it may share a process.
    pub isolation: Isolation,
    /// Hooks of plugins with a higher value run earlier.
    pub priority: i32,
    /// Meaning of `chat.message` for it (A4).
    pub chat_message: ChatMessage,
    /// Deadline of its hooks in milliseconds, instead of that of their class.
    pub timeout_ms: Option<u64>,
    /// It may make UNIX sockets, and so reach every service of this user that listens on one.
    pub unix_sockets: bool,
    /// It may approve what the user would be asked about. Granted like `env`.
    pub approve: bool,
    /// Its changes of a tool call's arguments need no approval. Granted like `env`.
    pub rewrite: bool,
    /// Tool calls of a model that it implements run by the user's rules without individual approval. Granted like `env`.
    pub model: bool,
    /// Tool calls of turns that it starts run by the user's rules without individual approval.
    pub prompt: bool,
    /// Its security-critical hooks: if one throws, is late or cannot be called, what it guards is refused (C5).
    pub fail_closed: Vec<String>,
    /// Those of these that the machine policy requires: the plugin must provide them, however they are declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Not loaded.
    pub disabled: bool,
    /// Disabled by the project's own file, which applies to the project's plugins only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled_in_project: bool,
    /// Switched on or off, whatever its manifest or the profile sets (D3).
    pub enabled: Option<bool>,
    /// Environment variables that it gets although they look like secrets. Only a plugin that is named by its npm package
    /// or by the path of its file gets them, and it runs in its own process.
    pub env: Vec<String>,
    /// TCP ports that it may listen on in the sandbox, as logins do that wait for the browser. Granted as `env` is.
    pub ports: Vec<u16>,
    /// Files and folders outside of the project that it may read. Granted as `env` is.
    pub read: Vec<String>,
    /// Files and folders outside of the project that it may read and change. Granted as `env` is.
    pub write: Vec<String>,
    /// Programs that it may run; all if unset, none if empty.
    pub processes: Option<Vec<String>>,
    /// Hosts that it may connect to; every public one if unset. Addresses are granted like `env`.
    pub hosts: Option<Vec<String>>,
}

/// `plugins.<id>.isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// It shares a process with plugins of the same grants until it hangs or crashes that process; then it gets its own.
    #[default]
    Auto,
    /// It always shares a process.
    Shared,
    /// It has a process of its own.
    Own,
}

/// `plugins.<id>.chat_message`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatMessage {
    /// The user's message, before the model is called, as in OpenCode.
    #[default]
    User,
    /// The assistant's message, when all of it is final.
    Assistant,
}
