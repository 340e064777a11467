//! What command hooks remember between the points that one event is spread over.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Mutex;

use outrigger_sandbox::Spawner;
use serde_json::Value;

use super::{CommandHooks, Handler};
use crate::locked as lock;
use crate::status::{Notice, NoticeFn};

/// Most calls whose permission is remembered. Each is asked about at once or never, so this is never reached but by calls
/// that nobody asks about.
const MOST_ALLOWED: usize = 256;
/// Most sessions that are remembered to have begun.
const MOST_SESSIONS: usize = 4096;

/// The command hooks of a project, and what they remember.
pub(crate) struct Commands {
    pub(super) with: CommandHooks,
    pub(super) handlers: Vec<Handler>,
    /// Index of the first handler among the plugins.
    base: usize,
    pub(super) directory: PathBuf,
    pub(super) spawner: Spawner,
    notice: NoticeFn,
    sessions: Mutex<BTreeMap<String, Seen>>,
    allowed: Mutex<VecDeque<(String, String)>>,
}

/// What is known of a session's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Told,
    Compacted,
}

impl Commands {
    pub(crate) fn new(
        with: CommandHooks,
        handlers: Vec<Handler>,
        base: usize,
        directory: PathBuf,
        spawner: Spawner,
        notice: NoticeFn,
    ) -> Self {
        Self {
            with,
            handlers,
            base,
            directory,
            spawner,
            notice,
            sessions: Mutex::default(),
            allowed: Mutex::default(),
        }
    }

    pub(super) fn handler(&self, plugin: usize) -> Option<&Handler> {
        self.handlers.get(plugin.checked_sub(self.base)?)
    }

    /// Tells the user something that a command said, or that became of it.
    pub(crate) fn tell(&self, plugin: &str, session: Option<&str>, message: String) {
        (self.notice)(Notice::Command {
            plugin: plugin.to_owned(),
            session_id: session.map(str::to_owned),
            message,
        });
    }

    /// With which source a session begins now, in this process; `None` when it has begun. Asking makes it begun.
    pub(super) fn begins(&self, session: &str, has_messages: bool) -> Option<&'static str> {
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= MOST_SESSIONS && !sessions.contains_key(session) {
            return None;
        }
        match sessions.insert(session.to_owned(), Seen::Told) {
            Some(Seen::Told) => None,
            Some(Seen::Compacted) => Some("compact"),
            None if has_messages => Some("resume"),
            None => Some("startup"),
        }
    }

    /// A session is summarised: it begins anew with the next prompt.
    pub(super) fn compacted(&self, session: &str) {
        if let Some(seen) = lock(&self.sessions).get_mut(session) {
            *seen = Seen::Compacted;
        }
    }

    /// The sessions that have begun in this process.
    pub(crate) fn begun(&self) -> Vec<String> {
        lock(&self.sessions).keys().cloned().collect()
    }

    /// A command allows this call.
    pub(super) fn allow(&self, call: (String, String)) {
        let mut allowed = lock(&self.allowed);
        if allowed.len() >= MOST_ALLOWED {
            allowed.pop_front();
        }
        allowed.push_back(call);
    }

    pub(super) fn allows(&self, call: &(String, String)) -> bool {
        lock(&self.allowed).contains(call)
    }

    /// The call is asked about no more, or anew.
    pub(super) fn forget(&self, call: &(String, String)) {
        lock(&self.allowed).retain(|other| other != call);
    }
}

/// Session and call of a tool hook's input.
pub(super) fn call_of(input: &Value) -> Option<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let call = input
        .get("callID")
        .or_else(|| input.get("tool")?.get("callID"));
    Some((text(input.get("sessionID"))?, text(call)?))
}
