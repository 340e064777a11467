//! `[plugins.<id>]`: what the user says of one plugin.

use serde::Serialize;

/// `[plugins.<id>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plugin {
    /// Whether it may share a process.
    pub isolation: Isolation,
    /// Hooks of a plugin with a higher one run earlier.
    pub priority: i32,
    /// What `chat.message` means to it (A4).
    pub chat_message: ChatMessage,
    /// Deadline of its hooks in milliseconds, instead of that of their class.
    pub timeout_ms: Option<u64>,
    /// It may make UNIX sockets, and so reach every service of this user that listens on one.
    pub unix_sockets: bool,
    /// It may approve what the user would be asked about. Granted as `env` is.
    pub approve: bool,
    /// Its changes of a tool call's arguments count without a question. Granted as `env` is.
    pub rewrite: bool,
    /// Where it speaks for a model, that one's tool calls run by the user's rules without a question for each. Granted as
    /// `env` is.
    pub model: bool,
    /// The tool calls of turns that it starts run by the user's rules without a question for each.
    pub prompt: bool,
    /// Its hooks that are security-critical: where one throws, is late or cannot be called, what it guards is refused
    /// (C5).
    pub fail_closed: Vec<String>,
    /// Of these, those that the policy of the machine requires: the plugin must bring them, however they are declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Not loaded.
    pub disabled: bool,
    /// The project's own file says so, which counts for what the project brings and for nothing else.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disabled_in_project: bool,
    /// Switched on or off, whatever its manifest or the profile says (D3).
    pub enabled: Option<bool>,
    /// Environment variables that it gets although they look like secrets. Only a plugin that is named by its npm package
    /// or by the path of its file gets them, and it has a process of its own.
    pub env: Vec<String>,
    /// TCP ports that it may listen on in the sandbox, as logins do that wait for the browser. Granted as `env` is.
    pub ports: Vec<u16>,
    /// Files and folders outside of the project that it may read. Granted as `env` is.
    pub read: Vec<String>,
    /// Files and folders outside of the project that it may read and change. Granted as `env` is.
    pub write: Vec<String>,
    /// Programs that it may run; all where nothing is said, none when empty.
    pub processes: Option<Vec<String>>,
    /// Hosts that it may connect to; every public one where nothing is said. Addresses are granted as `env` is.
    pub hosts: Option<Vec<String>>,
}

/// `plugins.<id>.isolation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// It shares a process with plugins of the same grants until it hangs or crashes that; then it has one of its own.
    #[default]
    Auto,
    /// It shares a process, whatever it does.
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
