//! The interface of a tool call to its session.

mod cancel;
mod context;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::Block;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ChatMessage;
use outrigger_protocol::permission::Action;
use outrigger_protocol::question::{Answer, Question};
use outrigger_protocol::session::Todo;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, ProcessFreeze};
pub(crate) use outrigger_stdx::sync::lock;
use serde_json::Value;

pub use self::cancel::CancelFlag;
pub(crate) use self::context::BY_RULE;
pub use self::context::{Grant, Limits, ToolContext};
use crate::error::ToolError;

/// A permission question, before it has an identifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PermissionAsk {
    /// `bash`, `edit`, `read`, `external_directory` …, as named in rules.
    pub permission: String,
    /// The commands, paths or URLs in question; each must be allowed.
    pub patterns: Vec<String>,
    /// Patterns that "always" would allow.
    pub always: Vec<String>,
    /// Other spellings of the commands, and commands that may be among them, in which `\0` represents unknown text: a rule about
    /// specific commands that denies or asks about one of these applies, too.
    pub spellings: Vec<String>,
    /// The command line may run commands that [`Self::spellings`] do not contain: where a rule denies some, only the user allows it.
    pub unread: bool,
    /// The reason, if it is unclear what the command line runs: then only a pattern for everything allows it.
    pub unclear: Option<String>,
    /// For display.
    pub metadata: Value,
    /// It is about files that a command changes, which needs its own question. The command's sandbox protects those that make something
    /// run later.
    pub by_command: bool,
    /// The plugin's tool that asks in its own words, and its plugin: "always" covers what that tool asks about, and nothing else.
    pub asked_by: Option<String>,
    /// It is unknown what the call does: only a rule that names the permission allows it, not one for all permissions (`*`).
    pub only_named: bool,
}

/// What a command may do outside its sandbox if the user lets it run there; paths that rules deny stay masked.
#[derive(Debug)]
pub struct Outside {
    /// Its sandbox; `None` allows everything.
    pub policy: Option<Policy>,
    /// Every other process is frozen until the command has ended and this is dropped: none of them can change what it runs.
    pub freeze: ProcessFreeze,
}

/// The rules about reading files: allow, ask, or deny.
pub type ReadRules = Box<dyn DecideRead>;

/// Rules about reading, for searches. Files are named by absolute paths.
///
/// A search of 100,000 files has no time to follow the links of each path. It checks by name alone ([`Self::of_unlinked`]), opens what
/// passes so that no link is followed, and checks the open file again ([`Self::denies_file`]).
pub trait DecideRead: Send + Sync {
    /// Returns the decision for a file, by its name, by the targets of its links and by its other names. Reads the disk.
    fn of(&self, file: &Path) -> Action;
    /// Returns the decision for a file without links on its path, by its name alone. Does not read the disk.
    fn of_unlinked(&self, file: &Path) -> Action {
        self.of(file)
    }
    /// Returns whether a file that passed by its name is denied under another one, by its metadata.
    fn denies_file(&self, file: &Metadata) -> bool {
        let _ = file;
        false
    }
    /// Returns whether [`Self::denies_file`] could deny any.
    fn denies_files(&self) -> bool {
        false
    }
}

impl<F: Fn(&Path) -> Action + Send + Sync> DecideRead for F {
    fn of(&self, file: &Path) -> Action {
        self(file)
    }
}

/// The result of a hook chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookVerdict {
    /// The output after all handlers.
    pub output: Value,
    /// A handler refused or, at a tool's hook points, threw.
    pub block: Option<Block>,
    /// The user must be asked about the call regardless of the rules. The host enforces this when it asks; a call that asks nothing on
    /// its own is asked about all the same.
    pub requires_approval: bool,
}

/// Work for an agent in a child session.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentRequest {
    /// Three to five words; title of the child session.
    pub description: String,
    /// What to do.
    pub prompt: String,
    /// The agent.
    pub agent: String,
    /// A child session to resume; ignored if it does not exist (as in OpenCode).
    pub task_id: Option<String>,
    /// Slash command that made this task, if one did.
    pub command: Option<String>,
}

/// The result of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentAnswer {
    /// The child session.
    pub session_id: SessionId,
    /// The model that it used.
    pub model: ModelRef,
    /// Text of its last message.
    pub text: String,
}

/// A request of an MCP server to the session's model (sampling).
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// The server.
    pub server: String,
    /// Its instructions, if it has any.
    pub system: Option<String>,
    /// The messages for the model.
    pub messages: Vec<ChatMessage>,
    /// Maximum number of tokens of the answer.
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
}

/// The model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleAnswer {
    /// The model.
    pub model: String,
    /// Its text.
    pub text: String,
}

/// A skill, as the `skill` tool needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillEntry {
    /// Name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Text after the front matter.
    pub content: String,
    /// Folder of `SKILL.md`.
    pub dir: PathBuf,
}

/// An agent, as the `task` tool needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentEntry {
    /// Name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// It may be called as a subagent.
    pub subagent: bool,
}

/// An instruction file next to a file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct NearbyInstruction {
    /// Its path.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// The result of formatters on a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formatted {
    /// One of them ran, and the file may have changed.
    pub ran: bool,
    /// Formatters that were killed, each with its deadline in seconds: the file may be half formatted.
    pub ended: Vec<(String, u64)>,
}

/// The session's side of one tool call; the agent implements it, one object per call.
///
/// What restricts or records a call has no default: a host without rules must say so. Defaults are absent features.
pub trait ToolHost: Send + Sync {
    /// Runs the chain of a hook point.
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict>;
    /// Asks a permission question. `Ok`: the decision for the record, `Err`: the refusal, for the model.
    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>>;
    /// Records that the call runs with these arguments, after all hooks and permission questions are answered. Returns once the record
    /// is written (invariant 6: the intent before the effect). An error refuses the call.
    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>>;
    /// Reports that all hooks are answered and the call starts with these arguments. Called again after the user has answered its
    /// permission questions: its time starts then.
    fn started(&self, input: &Value);
    /// Reports progress of the running call.
    fn progress(&self, title: Option<String>, metadata: Value);
    /// Publishes an event.
    fn publish(&self, event: Event);
    /// Runs an agent in a child session. The host reports [`ToolHost::progress`] with the title and `{parentSessionId, sessionId,
    /// model}` as soon as the child session exists, as OpenCode does.
    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>>;
    /// Asks the user and waits. `None` if the user dismisses the questions, or no user can be asked.
    fn question<'a>(&'a self, _questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<Answer>>> {
        Box::pin(async { None })
    }
    /// Lets the session's model answer an MCP server after the user has agreed to this request. `Err`: the reason for the server.
    fn sample<'a>(
        &'a self,
        _request: SampleRequest,
    ) -> BoxFuture<'a, Result<SampleAnswer, String>> {
        Box::pin(std::future::ready(Err("nobody can be asked".to_owned())))
    }
    /// Returns the sandbox of a process that the call starts: what the rules deny to tools is also masked from it. `None`: no
    /// restrictions. An error refuses the call.
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>>;
    /// Asks the user whether to rerun a command outside its sandbox, after it probably failed because of it; `why` gives the reason and
    /// `printed` the output. `None`: it is not rerun, or no user can be asked.
    fn outside<'a>(
        &'a self,
        _command: &'a str,
        _why: &'a str,
        _printed: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        Box::pin(async { Ok(None) })
    }
    /// Skills that this agent may load.
    fn skills(&self) -> Vec<SkillEntry>;
    /// Reports that a skill was loaded: its MCP servers are started for this session. Returns what the model must know about them;
    /// `None` for a skill without any.
    fn skill_loaded<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
    /// Returns `context.extra` for a plugin's tool: in OpenCode the model that called it, and whether the user made the call.
    fn extra(&self) -> Value {
        Value::Object(Default::default())
    }
    /// Returns the available agents.
    fn agents(&self) -> Vec<AgentEntry>;
    /// Replaces the session's todo list, stores and publishes it.
    fn set_todos<'a>(&'a self, todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>>;
    /// Reports that a tool has changed a text file from `before` (`None`: it did not exist), with the permission for it.
    fn wrote<'a>(
        &'a self,
        _file: &'a Path,
        _before: Option<&'a [u8]>,
        _after: &'a [u8],
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
    /// Runs the configured formatters on a written file.
    fn format<'a>(&'a self, _file: &'a Path) -> BoxFuture<'a, Formatted> {
        Box::pin(std::future::ready(Formatted::default()))
    }
    /// Notifies language servers of the current content of a file and waits, within limits, for their diagnostics. Returns the
    /// diagnostics of every known file, in LSP's form.
    fn diagnose<'a>(&'a self, _file: &'a Path) -> BoxFuture<'a, BTreeMap<PathBuf, Vec<Value>>> {
        Box::pin(std::future::ready(BTreeMap::new()))
    }
    /// Sends an LSP request about a file to its language servers; methods of `textDocument/` get the file's URI. Returns the answers of
    /// those that had one, `None` if there is no server for this kind of file.
    fn ask_language<'a>(
        &'a self,
        _file: &'a Path,
        _method: &'a str,
        _params: Value,
    ) -> BoxFuture<'a, Option<Vec<Value>>> {
        Box::pin(std::future::ready(None))
    }
    /// Returns symbols of the project by name, from the running language servers, in LSP's form.
    fn symbols<'a>(&'a self, _query: &'a str) -> BoxFuture<'a, Vec<Value>> {
        Box::pin(std::future::ready(Vec::new()))
    }
    /// Returns the rules about reading files, for searches, which meet too many to ask about each.
    fn read_rules(&self) -> ReadRules;
    /// Returns whether a user's rule allows this URL by name, not with all others: such a URL may point to this machine or its network.
    fn names_address(&self, _url: &str) -> bool {
        false
    }
    /// Returns whether a user's rule denies this URL, to which another one redirects.
    fn denies_address(&self, url: &str) -> bool;
    /// Returns whether a user's rule denies that a page of this URL is read: a rule about the URL, or one of the permission `browser`.
    fn denies_page(&self, url: &str) -> bool;
    /// Reports that a file was read and is likely to be changed.
    fn opened(&self, _file: &Path) {}
    /// Returns instruction files near `file` that this session has not been shown yet. [`crate::nearby_instruction_files`] finds the
    /// candidates.
    fn nearby_instructions(&self, _file: &Path) -> Vec<NearbyInstruction> {
        Vec::new()
    }
}
