//! State of command hooks between the points of one event.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_config::claude_hooks::HookEvent;
use outrigger_plugin_status::{BreakerStatus, Notice, NoticeFn};
use outrigger_stdx::sync::lock;
use serde_json::Value;

use crate::async_hooks::AsyncHooks;
use crate::breakers::CommandBreakers;
use crate::transcript::Transcripts;
use crate::{CommandHooks, Handler, SecondPass};

/// Maximum number of remembered calls. Each is short, so only calls that never complete reach this.
const MAX_CALLS: usize = 256;
/// Maximum number of sessions whose start is remembered.
const MAX_SESSIONS: usize = 4096;

/// Time limit for async commands at the end, as for a plugin's `dispose`.
const ASYNC_END_TIMEOUT: Duration = Duration::from_secs(2);

/// The command hooks of a project, with their state.
pub struct Commands {
    pub(crate) with: CommandHooks,
    pub(crate) handlers: Vec<Handler>,
    /// Index of the first handler among the plugins.
    base: usize,
    pub(crate) directory: PathBuf,
    /// Shell for commands that are a line: `bash` if installed, else `sh`.
    pub(crate) shell: PathBuf,
    pub(crate) notice: NoticeFn,
    pub(crate) breakers: CommandBreakers,
    sessions: Mutex<BTreeMap<String, Seen>>,
    allowed: Mutex<VecDeque<Call>>,
    /// Calls that the user must be asked about, with the reason.
    asked: Mutex<VecDeque<(Call, String)>>,
    /// Output of commands before a call, for the model to read after its result.
    remarks: Mutex<VecDeque<(Call, String)>>,
    pub(crate) async_hooks: AsyncHooks,
    pub(crate) transcripts: Arc<Transcripts>,
}

/// A session and a call of it.
type Call = (String, String);

/// State of a session's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Reported,
    Compacted,
}

impl Commands {
    /// Creates the state from handlers of [`Handler::new`], one for each file; `base` is the index of the first among the
    /// plugins. Must be called within a runtime.
    #[must_use]
    pub fn new(
        with: CommandHooks,
        handlers: Vec<Handler>,
        base: usize,
        directory: PathBuf,
        notice: NoticeFn,
        breakers: CommandBreakers,
    ) -> Self {
        let path = with.environment.iter().find(|(name, _)| name == "PATH");
        let shell =
            path.and_then(|(_, path)| outrigger_sandbox::host_path::which_of_host("bash", path));
        Self {
            shell: shell.unwrap_or_else(|| PathBuf::from("sh")),
            with,
            handlers,
            base,
            directory,
            notice,
            breakers,
            sessions: Mutex::default(),
            allowed: Mutex::default(),
            asked: Mutex::default(),
            remarks: Mutex::default(),
            async_hooks: AsyncHooks::default(),
            transcripts: Arc::new(Transcripts::new()),
        }
    }

    /// Returns the breakers of a file's commands that are not at rest.
    #[must_use]
    pub fn breakers_of(&self, plugin: usize) -> Vec<BreakerStatus> {
        self.breakers.of(plugin)
    }

    /// Returns whether any file has a command for an event.
    pub(crate) fn runs(&self, event: HookEvent) -> bool {
        self.handlers.iter().any(|handler| handler.has(event))
    }

    pub(crate) fn handler(&self, plugin: usize) -> Option<&Handler> {
        self.handlers.get(plugin.checked_sub(self.base)?)
    }

    /// Waits briefly for the async commands, and kills those that still run.
    pub async fn end_async(&self) {
        self.async_hooks.end(ASYNC_END_TIMEOUT).await;
    }

    /// Reports a command's message or failure to the user.
    pub fn report(&self, plugin: &str, session: Option<&str>, message: String) {
        (self.notice)(Notice::Command {
            plugin: plugin.to_owned(),
            session_id: session.map(str::to_owned),
            message,
        });
    }

    /// Returns the source with which a session starts now, in this process; `None` if it has started. The call marks it as
    /// started.
    pub(crate) fn begins(&self, session: &str, has_messages: bool) -> Option<&'static str> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            return None;
        }
        match sessions.insert(session.to_owned(), Seen::Reported) {
            Some(Seen::Reported) => None,
            Some(Seen::Compacted) => Some("compact"),
            None if has_messages => Some("resume"),
            None => Some("startup"),
        }
    }

    /// Records that a session was compacted: it starts again with the next prompt.
    pub(crate) fn compacted(&self, session: &str) {
        if let Some(seen) = lock(&self.sessions).get_mut(session) {
            *seen = Seen::Compacted;
        }
    }

    /// Returns the sessions that have started in this process.
    #[must_use]
    pub fn begun(&self) -> Vec<String> {
        lock(&self.sessions).keys().cloned().collect()
    }

    /// Records that the call changed: earlier permissions do not apply, except that of the command that changed it.
    pub fn changed(&self, input: &Value, second_pass: &SecondPass) {
        if let Some(call) = call_of(input).filter(|_| second_pass.is_allowed()) {
            self.allow(call);
        }
    }

    /// Records that a command allows this call; a call that another command wants to be asked about still is.
    pub(crate) fn allow(&self, call: Call) {
        if !lock(&self.asked).iter().any(|(other, _)| *other == call) {
            push(&self.allowed, call);
        }
    }

    pub(crate) fn allows(&self, call: &Call) -> bool {
        lock(&self.allowed).contains(call)
    }

    /// Records that the user must be asked about this call regardless of the rules.
    pub(crate) fn ask(&self, call: Call, why: String) {
        lock(&self.allowed).retain(|other| *other != call);
        push_once(&self.asked, (call, why));
    }

    /// Returns why the user must be asked about a call, if so; once.
    #[must_use]
    pub fn take_asked(&self, session: &str, call: &str) -> Option<String> {
        let whys = take(&self.asked, session, call);
        (!whys.is_empty()).then(|| whys.join("\n"))
    }

    /// Stores a text that the model reads after the call's result.
    pub(crate) fn remark(&self, call: Call, text: String) {
        push_once(&self.remarks, (call, text));
    }

    pub(crate) fn take_remarks(&self, (session, call): &Call) -> Vec<String> {
        take(&self.remarks, session, call)
    }

    /// Forgets the call's question.
    pub(crate) fn forget(&self, call: &Call) {
        lock(&self.allowed).retain(|other| other != call);
    }
}

fn push<T>(list: &Mutex<VecDeque<T>>, one: T) {
    let mut list = lock(list);
    if list.len() >= MAX_CALLS {
        list.pop_front();
    }
    list.push_back(one);
}

/// A hook that is called again may repeat itself.
fn push_once<T: PartialEq>(list: &Mutex<VecDeque<T>>, one: T) {
    if !lock(list).contains(&one) {
        push(list, one);
    }
}

fn take(list: &Mutex<VecDeque<(Call, String)>>, session: &str, call: &str) -> Vec<String> {
    let mut list = lock(list);
    let of_it = |(other, _): &(Call, String)| other.0 == session && other.1 == call;
    let texts = list
        .iter()
        .filter(|one| of_it(one))
        .map(|(_, text)| text.clone())
        .collect();
    list.retain(|one| !of_it(one));
    texts
}

/// Returns session and call of a tool hook's input.
pub(crate) fn call_of(input: &Value) -> Option<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let call = input
        .get("callID")
        .or_else(|| input.get("tool")?.get("callID"));
    Some((text(input.get("sessionID"))?, text(call)?))
}
