//! The running MCP servers of skills, by session: what each session has loaded, and its processes while there are any.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_mcp::McpServers;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::tool::ToolSpec;
use outrigger_sandbox::SandboxOverrides;
use outrigger_sandbox::process_time::Instant;
use outrigger_stdx::sync::lock;
use serde_json::{Map, Value};

/// Prefix of the source of tools of skills' servers.
pub(crate) const SOURCE: &str = "skill-mcp:";
/// How long servers may take to end on their own.
pub const GRACE: Duration = Duration::from_millis(500);

/// The servers of all sessions.
#[derive(Default)]
pub struct SkillServers {
    sessions: Mutex<HashMap<SessionId, Arc<Held>>>,
}

/// The servers of one session.
#[derive(Default)]
pub(crate) struct Held {
    /// The entries of its loaded skills, by name of the server.
    pub(crate) entries: Mutex<Map<String, Value>>,
    /// The folders of the skills that they come from.
    pub(crate) origins: Mutex<BTreeMap<String, PathBuf>>,
    /// Server and tool behind each name that the model knows. Kept while the processes are stopped.
    pub(crate) tools: Mutex<BTreeMap<String, (String, String)>>,
    /// The processes, while there are any.
    pub(crate) live: tokio::sync::Mutex<Option<McpServers>>,
    /// The sandboxes of those that a plugin's skill contributes, by the label of the process.
    pub(crate) sandboxes: SandboxOverrides,
    pub(crate) used: Mutex<Option<Instant>>,
    calls: AtomicUsize,
}

/// Counts a running call, so that its servers are in use.
pub(crate) struct Calling<'a>(&'a Held);

impl<'a> Calling<'a> {
    pub(crate) fn begin(held: &'a Held) -> Self {
        held.calls.fetch_add(1, Ordering::SeqCst);
        Self(held)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        *lock(&self.0.used) = Some(Instant::now());
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether a tool belongs to a skill's server.
pub(crate) fn is_of_skill(spec: &ToolSpec) -> bool {
    spec.source.starts_with(SOURCE)
}

impl SkillServers {
    pub(crate) fn held(&self, session: &SessionId) -> Option<Arc<Held>> {
        lock(&self.sessions).get(session).cloned()
    }

    /// Returns the servers of a session that loads a skill.
    pub(crate) fn entry(&self, session: &SessionId) -> Arc<Held> {
        Arc::clone(lock(&self.sessions).entry(session.clone()).or_default())
    }

    /// Returns whether a session may be offered this tool: it is not a skill's, or the session has loaded its skill.
    #[must_use]
    pub fn offers(&self, session: Option<&SessionId>, spec: &ToolSpec) -> bool {
        if !is_of_skill(spec) {
            return true;
        }
        let held = session.and_then(|session| self.held(session));
        held.is_some_and(|held| lock(&held.tools).contains_key(&spec.name))
    }

    /// Ends the processes of a session; the next call restarts them.
    pub async fn release(&self, session: &SessionId) {
        if let Some(held) = self.held(session) {
            held.release().await;
        }
    }

    /// Ends and removes the servers of a deleted session.
    pub async fn forget(&self, session: &SessionId) {
        let held = lock(&self.sessions).remove(session);
        if let Some(held) = held {
            held.release().await;
        }
    }

    /// Ends all servers.
    pub async fn shutdown(&self) {
        let all: Vec<Arc<Held>> = lock(&self.sessions).drain().map(|(_, held)| held).collect();
        join_all(all.iter().map(|held| held.release())).await;
    }
}

impl Held {
    async fn release(&self) {
        if let Some(servers) = self.live.lock().await.take() {
            servers.shutdown(GRACE).await;
        }
    }

    /// Ends the processes once they have not been used for `idle`. Returns the minimum time until then, or `None` if
    /// there is nothing to watch any longer.
    pub(crate) async fn rest(&self, idle: Duration) -> Option<Duration> {
        let mut live = self.live.lock().await;
        live.as_ref()?;
        let used = *lock(&self.used);
        let since = used.map_or(idle, |used| used.elapsed());
        if self.calls.load(Ordering::SeqCst) > 0 || since < idle {
            return Some(idle.saturating_sub(since).max(Duration::from_millis(10)));
        }
        let servers = live.take();
        if let Some(servers) = servers {
            servers.shutdown(GRACE).await;
        }
        None
    }
}
