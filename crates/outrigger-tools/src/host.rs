//! What a tool call may ask of the session that it belongs to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::descriptor::{Capability, Constraints};
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::Block;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::permission::Action;
use outrigger_protocol::question::{Answer, Question};
use outrigger_protocol::session::Todo;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_sandbox::{Policy, Spawner};
use serde_json::Value;
use tokio::sync::watch;

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
}

/// What a command may do outside of its sandbox, where a person lets it run there: what rules deny is kept from it all the same.
#[derive(Clone, Debug)]
pub struct Outside(pub Option<Policy>);

/// What the rules say of reading each file: allowed, asked about, or denied.
pub struct ReadRules(Box<dyn Fn(&Path) -> Action + Send>);

impl ReadRules {
    /// Rules by this function, which gets an absolute path.
    #[must_use]
    pub fn new(rules: impl Fn(&Path) -> Action + Send + 'static) -> Self {
        Self(Box::new(rules))
    }

    /// What they say of a file.
    #[must_use]
    pub fn of(&self, file: &Path) -> Action {
        (self.0)(file)
    }
}

impl Default for ReadRules {
    fn default() -> Self {
        Self::new(|_| Action::Allow)
    }
}

/// What a hook chain came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookVerdict {
    /// The output after all handlers.
    pub output: Value,
    /// A handler refused or, at a tool's hook points, threw.
    pub block: Option<Block>,
    /// The user is to be asked about the call whatever the rules allow. The host requires it when it is asked; one that
    /// asks nothing by itself is asked about all the same.
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
    /// A child session of before to go on with; one that does not exist is ignored (as in the reference).
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

/// A skill, as the `skill` tool needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillEntry {
    /// Name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Text behind the front matter.
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
    /// Hooks and permission questions are behind the call. Answers when it is written down that it runs with these
    /// arguments (invariant 6: the intent before the effect). An error refuses the call.
    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        let _ = input;
        Box::pin(std::future::ready(Ok(())))
    }
    /// Hooks and permission questions are behind the call and it runs, with these arguments.
    fn started(&self, input: &Value);
    /// The running call reports.
    fn progress(&self, title: Option<String>, metadata: Value);
    /// Tells everyone.
    fn publish(&self, event: Event);
    /// Runs an agent in a child session. The host reports [`ToolHost::progress`] with the title and `{parentSessionId, sessionId,
    /// model}` as soon as the child session exists, as the reference does.
    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>>;
    /// Puts questions to the user and waits. `None` when the user puts them away, or nobody can be asked.
    fn question<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<Answer>>> {
        let _ = questions;
        Box::pin(async { None })
    }
    /// The box of a process that the call starts: what the rules deny to tools is kept from it too. `None`: nothing is.
    /// An error refuses the call.
    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(async { Ok(None) })
    }
    /// A command failed, as it seems for its sandbox, which `why` says: a person is asked whether it runs once more outside of it. `None`:
    /// it does not, or there is nobody to ask.
    fn outside<'a>(
        &'a self,
        command: &'a str,
        why: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        let _ = (command, why);
        Box::pin(async { Ok(None) })
    }
    /// Skills that this agent may load.
    fn skills(&self) -> Vec<SkillEntry>;
    /// A skill was loaded: its MCP servers are started for this session. Answers what the model has to know of them; `None`
    /// for a skill without any.
    fn skill_loaded<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<String>> {
        let _ = name;
        Box::pin(std::future::ready(None))
    }
    /// What a tool of a plugin finds in `context.extra`: in the reference the model that called it, and whether the call is
    /// the user's own.
    fn extra(&self) -> Value {
        Value::Object(Default::default())
    }
    /// Agents that there are.
    fn agents(&self) -> Vec<AgentEntry>;
    /// Replaces the session's todo list, stores it and tells everyone.
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
    /// Tells language servers what is in a file now and waits, within limits, for what they say of it. The answer: the
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
        ReadRules::default()
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

/// Tells a call that its turn was cancelled. A flag whose switch is gone counts as raised: whoever ran the call is gone.
#[derive(Clone, Debug)]
pub struct CancelFlag {
    raised: watch::Receiver<bool>,
    /// Keeps the switch of a flag that nobody raises.
    _never: Option<Arc<watch::Sender<bool>>>,
}

impl CancelFlag {
    /// A switch and its flag.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (tx, rx) = watch::channel(false);
        (tx, rx.into())
    }
    /// A flag that is never raised.
    #[must_use]
    pub fn never() -> Self {
        let (tx, raised) = watch::channel(false);
        Self {
            raised,
            _never: Some(Arc::new(tx)),
        }
    }
    /// The flag as a channel, for those who wait on several things.
    #[must_use]
    pub fn receiver(&self) -> watch::Receiver<bool> {
        self.raised.clone()
    }
    /// True once it is raised.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.raised.borrow() || self.raised.has_changed().is_err()
    }
    /// Ends when it is raised.
    pub async fn cancelled(&self) {
        let mut raised = self.raised.clone();
        let _ = raised.wait_for(|raised| *raised).await;
    }
}

impl From<watch::Receiver<bool>> for CancelFlag {
    fn from(raised: watch::Receiver<bool>) -> Self {
        Self {
            raised,
            _never: None,
        }
    }
}

/// Limits of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Most lines of output that the model gets (the reference's 2000).
    pub max_lines: usize,
    /// Most bytes of output that the model gets (the reference's 50 KiB).
    pub max_bytes: usize,
    /// Most bytes of one output that are kept in a file.
    pub artifact_bytes: u64,
    /// How long a tool without a deadline of its own may run.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_lines: 2000,
            max_bytes: 50 * 1024,
            artifact_bytes: 512 * 1024 * 1024,
            deadline: Duration::from_secs(600),
        }
    }
}

/// What somebody was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// In words: "the agent `plan`".
    pub who: String,
    /// What.
    pub capabilities: BTreeSet<Capability>,
    /// What the user can do to grant more.
    pub how: String,
}

#[derive(Debug, Default)]
struct Shared {
    decisions: Mutex<Vec<String>>,
    reported: Mutex<Option<Value>>,
    answer: Mutex<Option<Value>>,
    asking: AtomicUsize,
    waited_ms: AtomicU64,
    kept: Mutex<Vec<PathBuf>>,
    /// Where each path of the call led when it was asked about.
    led: Mutex<HashMap<PathBuf, PathBuf>>,
}

/// What a tool has at hand while it runs. Cheap to clone.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call: ToolCall,
    /// Working directory of the session, absolute.
    pub directory: PathBuf,
    /// Root of the project, absolute; `/` where there is none.
    pub worktree: PathBuf,
    /// The session.
    pub host: Arc<dyn ToolHost>,
    /// Raised when the turn is cancelled.
    pub cancel: CancelFlag,
    /// The way to start a process.
    pub spawner: Spawner,
    /// Folder of the files that hold output that was cut.
    pub artifacts: PathBuf,
    /// Limits.
    pub limits: Limits,
    /// What whoever calls was granted; `None`: everything.
    pub granted: Option<Grant>,
    /// Roots that every path of this call has to lie in.
    roots: Vec<Roots>,
    shared: Arc<Shared>,
}

impl ToolContext {
    /// A context that is never cancelled, with the usual limits; set the public fields to change that.
    #[must_use]
    pub fn new(
        call: ToolCall,
        directory: PathBuf,
        worktree: PathBuf,
        host: Arc<dyn ToolHost>,
        spawner: Spawner,
        artifacts: PathBuf,
    ) -> Self {
        Self {
            call,
            directory,
            worktree,
            host,
            cancel: CancelFlag::never(),
            spawner,
            artifacts,
            limits: Limits::default(),
            granted: None,
            roots: Vec::new(),
            shared: Arc::default(),
        }
    }

    /// Asks, and writes the decision into the call's record.
    ///
    /// # Errors
    /// [`ToolError::Denied`] and [`ToolError::Rejected`] with the refusal.
    pub async fn ask(&self, ask: PermissionAsk) -> Result<(), ToolError> {
        let what = format!("{} {}", ask.permission, ask.patterns.join(", "));
        let begun = Instant::now();
        self.shared.asking.fetch_add(1, Ordering::SeqCst);
        // The guard also counts down when the call is cancelled while the question stands.
        let waiting = Waiting(&self.shared, begun);
        let answer = self.host.ask(ask).await;
        drop(waiting);
        let (decision, result) = match answer {
            Ok(decision) => (decision, Ok(())),
            Err(refusal) => ("deny".to_owned(), Err(refusal)),
        };
        lock(&self.shared.decisions).push(format!("{what} -> {decision}"));
        result
    }

    /// Reports how far the call is.
    pub fn progress(&self, title: Option<String>, metadata: Value) {
        *lock(&self.shared.reported) = Some(metadata.clone());
        self.host.progress(title, metadata);
    }

    /// Sets what the hooks of `tool.after_result` get in place of the output: the answer in the tool's own form. In the
    /// reference those of MCP tools get `{content: [...]}` as the server sent it. See [`crate::Tool::read`].
    pub fn answered(&self, answer: Value) {
        *lock(&self.shared.answer) = Some(answer);
    }

    /// Notes a file that we made for this call, to keep all of its output.
    pub(crate) fn keeps(&self, path: &Path) {
        lock(&self.shared.kept).push(path.to_owned());
    }

    /// Whether a file is one of those. A tool may name any other.
    pub(crate) fn has_kept(&self, path: &Path) -> bool {
        lock(&self.shared.kept).iter().any(|it| it == path)
    }

    pub(crate) fn answer(&self) -> Option<Value> {
        lock(&self.shared.answer).clone()
    }
    pub(crate) fn decisions(&self) -> Vec<String> {
        lock(&self.shared.decisions).clone()
    }
    pub(crate) fn reported(&self) -> Option<Value> {
        lock(&self.shared.reported).clone()
    }
    /// How long the call has waited for a person; that time does not count against its deadline.
    pub(crate) fn waited(&self) -> (bool, Duration) {
        (
            self.shared.asking.load(Ordering::SeqCst) > 0,
            Duration::from_millis(self.shared.waited_ms.load(Ordering::SeqCst)),
        )
    }
    /// Takes over the roots that the tool declares.
    pub(crate) fn apply_constraints(&mut self, limits: &Constraints, held: &[Vec<String>]) {
        let declared = [&limits.allowed_read_roots, &limits.allowed_write_roots];
        let absolute = |root: &String| resolve(&self.directory, Path::new(root));
        let roots = declared.into_iter().flatten().chain(held);
        self.roots = roots
            .map(|roots| Roots::new(roots.iter().map(absolute)))
            .collect();
    }

    /// Whether the roots of the tool hold this path, whose links have been followed.
    ///
    /// # Errors
    /// [`ToolError::OutsideRoots`].
    pub(crate) fn held(&self, real: &Path) -> Result<(), ToolError> {
        let outside = |roots: &&Roots| !roots.as_slice().iter().any(|root| real.starts_with(root));
        let Some(roots) = self.roots.iter().find(outside) else {
            return Ok(());
        };
        Err(ToolError::OutsideRoots {
            tool: self.call.tool.clone(),
            path: real.display().to_string(),
            roots: roots
                .as_slice()
                .iter()
                .map(|root| root.display().to_string())
                .collect(),
        })
    }

    /// Whether the policy of the machine leaves a path, as it is named and as its links lead.
    ///
    /// # Errors
    /// [`ToolError::Forbidden`].
    pub(crate) fn allowed(&self, shown: &Path, real: &Path) -> Result<(), ToolError> {
        let forbids = self.spawner.forbids();
        let of_real =
            |it: &dyn outrigger_sandbox::Forbids| (shown != real).then(|| it.file(real))?;
        let pattern = forbids.and_then(|it| it.file(shown).or_else(|| of_real(it)));
        match pattern {
            Some(pattern) => Err(ToolError::Forbidden {
                what: shown.display().to_string(),
                pattern,
            }),
            None => Ok(()),
        }
    }

    /// Notes where a path leads the first time; what was decided is about that, so it may not lead elsewhere later.
    ///
    /// # Errors
    /// [`ToolError::Failed`].
    pub(crate) fn leads_where_it_led(&self, shown: &Path, real: &Path) -> Result<(), ToolError> {
        let mut led = lock(&self.shared.led);
        let before = led
            .entry(shown.to_owned())
            .or_insert_with(|| real.to_owned());
        match before == real {
            true => Ok(()),
            false => Err(ToolError::failed(format!(
                "{} leads elsewhere than when it was checked: something changed a link on its way. Try again when that has ended.",
                shown.display()
            ))),
        }
    }

    /// The same place and session, for a call of its own: nothing asked, nothing reported.
    pub(crate) fn for_call(mut self, call: ToolCall) -> Self {
        self.call = call;
        self.shared = Arc::default();
        self
    }
}

struct Waiting<'a>(&'a Shared, Instant);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let ms = u64::try_from(self.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.waited_ms.fetch_add(ms, Ordering::SeqCst);
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A lock that outlives a panic of its holder: the data behind ours are plain values.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
