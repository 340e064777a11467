//! What a tool call may ask of the session that it belongs to.

mod cancel;
mod context;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
pub(crate) use outrigger_files::sync::lock;
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
use outrigger_sandbox::Policy;
use serde_json::Value;

pub use self::cancel::CancelFlag;
pub use self::context::{Grant, Limits, ToolContext};
use crate::error::ToolError;

/// A permission question, before it has an identifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PermissionAsk {
    /// `bash`, `edit`, `read`, `external_directory` … as rules name it.
    pub permission: String,
    /// The commands, paths or URLs in question; each must be allowed.
    pub patterns: Vec<String>,
    /// Patterns that "always" would allow.
    pub always: Vec<String>,
    /// Other spellings of the commands, and commands that may be among them, in which `\0` stands for what is not known: a rule about
    /// certain commands that denies or asks about one of these holds, too.
    pub spellings: Vec<String>,
    /// Why nobody knows what the command line runs, where that is so: then no pattern allows it but one for everything.
    pub unclear: Option<String>,
    /// For display.
    pub metadata: Value,
    /// It is about files that a command changes, which is asked about by itself. Its sandbox keeps those that make something run later.
    pub by_command: bool,
    /// Nobody knows what it does: it is allowed by a rule that names the permission, and by none for all of them (`*`).
    pub only_named: bool,
}

/// What a command may do outside of its sandbox, where a person lets it run there: what rules deny is kept from it all the same.
#[derive(Clone, Debug)]
pub struct Outside(pub Option<Policy>);

/// What the rules say of reading each file: allowed, asked about, or denied.
pub type ReadRules = Box<dyn DecideRead>;

/// Rules about reading, for searches. Files are named by absolute paths.
///
/// A search of 100,000 files has no time to follow the links of each path. It asks by name alone ([`Self::of_unlinked`]), opens
/// what passes so that no link is followed, and asks again about the file that it has ([`Self::denies_file`]).
pub trait DecideRead: Send + Sync {
    /// What they say of a file, by its name, by where its links lead and by what other names it has. Reads the disk.
    fn of(&self, file: &Path) -> Action;
    /// The same of a file to which no link leads, by its name alone. Does not read the disk.
    fn of_unlinked(&self, file: &Path) -> Action {
        self.of(file)
    }
    /// Whether a file that passed by its name is denied under another one, by what the system says of it.
    fn denies_file(&self, file: &Metadata) -> bool {
        let _ = file;
        false
    }
    /// Whether [`Self::denies_file`] could deny any.
    fn denies_files(&self) -> bool {
        false
    }
}

impl<F: Fn(&Path) -> Action + Send + Sync> DecideRead for F {
    fn of(&self, file: &Path) -> Action {
        self(file)
    }
}

/// What a hook chain came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookVerdict {
    /// The output after all handlers.
    pub output: Value,
    /// A handler refused or, at a tool's hook points, threw.
    pub block: Option<Block>,
    /// The user is to be asked about the call regardless of the rules. The host requires it when it is asked; one that asks nothing by
    /// itself is asked about all the same.
    pub requires_approval: bool,
}

/// Work for an agent in a child session.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentRequest {
    /// Three to five words; title of the child session.
    pub description: String,
    /// What to do.
    pub prompt: String,
    /// Agent.
    pub agent: String,
    /// A child session to resume; one that does not exist is ignored (as in OpenCode).
    pub task_id: Option<String>,
    /// Slash command that made this task, if one did.
    pub command: Option<String>,
}

/// What a subagent came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentAnswer {
    /// The child session.
    pub session_id: SessionId,
    /// Model that it used.
    pub model: ModelRef,
    /// Text of its last message.
    pub text: String,
}

/// What an MCP server wants the session's model to answer (sampling).
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// The server.
    pub server: String,
    /// Its instructions, if it has any.
    pub system: Option<String>,
    /// What the model reads.
    pub messages: Vec<ChatMessage>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u64>,
    /// How freely the model chooses.
    pub temperature: Option<f64>,
}

/// What the model answered.
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

/// An instruction file that lies beside a file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct NearbyInstruction {
    /// Where.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// What formatters made of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formatted {
    /// One of them ran, and the file may be another.
    pub ran: bool,
    /// Those that had to be ended, each with its deadline in seconds: what they left may be half of their work.
    pub ended: Vec<(String, u64)>,
}

/// The session's side of one tool call; the agent implements it, one object per call.
pub trait ToolHost: Send + Sync {
    /// Runs the chain of a hook point.
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict>;
    /// Puts a permission question. `Ok`: the decision for the record, `Err`: the refusal, for the model.
    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>>;
    /// All hooks and permission questions are answered. Returns when it is written down that it runs with these
    /// arguments (invariant 6: the intent before the effect). An error refuses the call.
    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        let _ = input;
        Box::pin(std::future::ready(Ok(())))
    }
    /// All hooks are answered and the call begins, with these arguments. Once more when a person has answered its permission
    /// questions: its time begins then.
    fn started(&self, input: &Value);
    /// The running call reports.
    fn progress(&self, title: Option<String>, metadata: Value);
    /// Publishes an event.
    fn publish(&self, event: Event);
    /// Runs an agent in a child session. The host reports [`ToolHost::progress`] with the title and `{parentSessionId, sessionId,
    /// model}` as soon as the child session exists, as OpenCode does.
    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>>;
    /// Puts questions to the user and waits. `None` when the user puts them away, or nobody can be asked.
    fn question<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<Answer>>> {
        let _ = questions;
        Box::pin(async { None })
    }
    /// Has the session's model answer an MCP server, once a person has agreed to this request. `Err`: why not, for the server.
    fn sample<'a>(&'a self, request: SampleRequest) -> BoxFuture<'a, Result<SampleAnswer, String>> {
        let _ = request;
        Box::pin(std::future::ready(Err("nobody can be asked".to_owned())))
    }
    /// The sandbox of a process that the call starts: what the rules deny to tools is kept from it too. `None`: nothing is.
    /// An error refuses the call.
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(async { Ok(None) })
    }
    /// A command failed, as it seems for its sandbox, which `why` says and `printed` shows: a person is asked whether it runs once more
    /// outside of it. `None`: it does not, or there is nobody to ask.
    fn outside<'a>(
        &'a self,
        command: &'a str,
        why: &'a str,
        printed: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        let _ = (command, why, printed);
        Box::pin(async { Ok(None) })
    }
    /// Skills that this agent may load.
    fn skills(&self) -> Vec<SkillEntry>;
    /// A skill was loaded: its MCP servers are started for this session. Answers what the model must know of them; `None` for a skill
    /// without any.
    fn skill_loaded<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = name;
        Box::pin(std::future::ready(None))
    }
    /// What a tool of a plugin finds in `context.extra`: in OpenCode the model that called it, and whether the call is
    /// the user's own.
    fn extra(&self) -> Value {
        Value::Object(Default::default())
    }
    /// Agents that there are.
    fn agents(&self) -> Vec<AgentEntry>;
    /// Replaces the session's todo list, stores and publishes it.
    fn set_todos<'a>(&'a self, todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>>;
    /// A tool has changed what a text file says, from `before` (`None`: it was not there), with the permission for it.
    fn wrote<'a>(
        &'a self,
        file: &'a Path,
        before: Option<&'a [u8]>,
        after: &'a [u8],
    ) -> BoxFuture<'a, ()> {
        let _ = (file, before, after);
        Box::pin(std::future::ready(()))
    }
    /// Lets the configured formatters at a file that was written.
    fn format<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Formatted> {
        let _ = file;
        Box::pin(std::future::ready(Formatted::default()))
    }
    /// Notifies language servers of what is in a file now and waits, within limits, for what they say of it. The answer: the
    /// diagnostics of every file that is known, in LSP's form.
    fn diagnose<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, BTreeMap<PathBuf, Vec<Value>>> {
        let _ = file;
        Box::pin(std::future::ready(BTreeMap::new()))
    }
    /// Puts a request of LSP about a file to its language servers; methods of `textDocument/` get the file's address. The
    /// answers of those that had one, `None` where no server is for this kind of file.
    fn ask_language<'a>(
        &'a self,
        file: &'a Path,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Vec<Value>>> {
        let _ = (file, method, params);
        Box::pin(std::future::ready(None))
    }
    /// Symbols of the project by name, from the language servers that run, in LSP's form.
    fn symbols<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Vec<Value>> {
        let _ = query;
        Box::pin(std::future::ready(Vec::new()))
    }
    /// What the rules say of reading a file, for searches, which meet too many to ask about each.
    fn read_rules(&self) -> ReadRules {
        Box::new(|_: &Path| Action::Allow)
    }
    /// Whether a rule of the user's allows this address by name, and not with all others: one that is named may lead to this
    /// machine or its network.
    fn names_address(&self, url: &str) -> bool {
        let _ = url;
        false
    }
    /// Whether a rule of the user's denies this address, to which another one leads.
    fn denies_address(&self, url: &str) -> bool {
        let _ = url;
        false
    }
    /// A file was read, and is likely to be changed.
    fn opened(&self, file: &Path) {
        let _ = file;
    }
    /// Instruction files near `file` that this session has not been shown yet. [`crate::nearby_instruction_files`] finds
    /// the candidates.
    fn nearby_instructions(&self, file: &Path) -> Vec<NearbyInstruction> {
        let _ = file;
        Vec::new()
    }
}
