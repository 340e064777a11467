//! What a running agent holds.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::Loaded;
use outrigger_js::SdkAnswer;
use outrigger_models::Models;
use outrigger_permissions::agents::AgentInfo;
use outrigger_plugins::{EventRow, PerfRow, PluginStatus, Plugins, PointRow};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::permission::Rule;
use outrigger_protocol::rpc::SdkRequest;
use outrigger_protocol::session::{Project, Session, SessionStatus};
use outrigger_sandbox::Spawner;
use outrigger_store::Store;
use outrigger_tools::ToolRuntime;
use outrigger_workspace::Folders;
use outrigger_workspace::Place;
use outrigger_workspace::sync::lock;
use tokio::sync::{broadcast, watch};

use crate::boot::background::Background;
use crate::bus::{Bus, numbered};
use crate::error::AgentError;
use crate::ids::now;
use crate::permission::answering::Answering;
use crate::permission::ask::Questions;
use crate::plugin_api::hook_notifications::Told;
use crate::session::sessions::Sessions;

/// Answers the requests of plugins' SDK clients. The server implements it with the same router that clients reach over
/// TCP; the agent only passes requests on.
pub trait SdkService: Send + Sync {
    /// Answers one request. A body that has no end of its own is streamed.
    fn call(&self, request: SdkRequest) -> BoxFuture<'static, SdkAnswer>;
}

/// A slash command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Text with places for the arguments.
    pub template: String,
    /// Agent that runs it.
    pub agent: Option<String>,
    /// Model that it wants, `provider/model`.
    pub model: Option<String>,
    /// It runs as a subtask; unset, it does where its agent is a subagent.
    pub subtask: Option<bool>,
    /// What it was made from.
    pub source: CommandSource,
}

/// What a slash command was made from, as `GET /command` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandSource {
    /// Bundled, of the configuration, or a file of commands.
    #[default]
    Command,
    /// A prompt of an MCP server. What its text says is never run.
    Mcp,
    /// A skill of this machine.
    Skill,
    /// A skill that was fetched from an address, or is of a project that nobody trusted. What its text says is never run.
    FetchedSkill,
}

impl CommandSource {
    /// The reference's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Mcp => "mcp",
            Self::Skill | Self::FetchedSkill => "skill",
        }
    }

    /// What its template names may be run and read: whoever wrote it is trusted as the configuration is.
    pub(crate) fn is_own(self) -> bool {
        matches!(self, Self::Command | Self::Skill)
    }
}

/// A running agent: one project folder, one store, one set of plugins. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) place: Place,
    /// Its folder, held open; `None` where there was none.
    pub(crate) anchor: Option<Arc<outrigger_sandbox::Anchor>>,
    /// What of files is allowed, asked about and denied.
    pub(crate) access: outrigger_permissions::access::Access,
    pub(crate) project: Project,
    pub(crate) folders: Folders,
    /// What plugins changed of the user's messages beside a running turn.
    pub(crate) rewritten: crate::session::edit::Rewritten,
    /// Set when plugins have prepared the providers that they bring.
    pub(crate) providers: tokio::sync::OnceCell<()>,
    /// Logins that wait for their user, by provider.
    pub(crate) logins: Mutex<BTreeMap<String, Arc<outrigger_plugins::Flow>>>,
    pub(crate) config: Loaded,
    /// What the user's files say, whatever plugins made of it.
    pub(crate) user_rules: outrigger_permissions::pinned_rules::UserRules,
    /// Boxes of what plugins bring.
    pub(crate) boxes: outrigger_sandbox::OwnBoxes,
    pub(crate) agents: BTreeMap<String, AgentInfo>,
    pub(crate) commands: BTreeMap<String, CommandInfo>,
    pub(crate) skills: Vec<outrigger_config::skills::Skill>,
    pub(crate) store: Store,
    pub(crate) bus: Bus,
    pub(crate) spawner: Spawner,
    /// The same for commands, which reach the hosts of `tools.hosts`.
    pub(crate) commands_spawner: Spawner,
    pub(crate) models: Models,
    pub(crate) plugins: Plugins,
    /// Between plugins and this.
    pub(crate) bridge: Arc<crate::plugin_api::host_bridge::Bridge>,
    /// Which plugins should run, as it was decided before any was started (D2).
    pub(crate) admitted: outrigger_plugins::Snapshot,
    pub(crate) mcp: outrigger_mcp::McpServers,
    pub(crate) skill_servers: crate::tools::mcp::SkillServers,
    /// What is told of subagents behind their calls.
    pub(crate) late: crate::plugin_api::deferred_events::Late,
    pub(crate) lsp: outrigger_lsp::Lsp,
    pub(crate) formatters: outrigger_workspace::formatters::Formatters,
    /// Servers of `.mcp.json` that are not started, and what to do about each.
    pub(crate) mcp_waiting: BTreeMap<String, String>,
    pub(crate) runtime: ToolRuntime,
    pub(crate) artifacts: PathBuf,
    pub(crate) temporary: outrigger_permissions::command_sandbox::Temporary,
    /// Services of this machine that commands reach.
    pub(crate) loopback: outrigger_sandbox::Loopback,
    /// Prompts that wait for the turn before them.
    pub(crate) waiting: crate::turn::queue::Waiting,
    /// How shell commands are run.
    pub(crate) shell: outrigger_tools::builtin::Options,
    pub(crate) snapshots: outrigger_workspace::snapshot::Snapshots,
    pub(crate) settled: Option<Arc<outrigger_permissions::workspace_trust::Settled>>,
    pub(crate) answering: Answering,
    pub(crate) questions: Questions,
    /// Terminals of clients.
    pub(crate) ptys: outrigger_workspace::terminals::Ptys,
    pub(crate) user_questions: crate::permission::user_questions::UserQuestions,
    pub(crate) approvals: Mutex<Vec<Rule>>,
    /// Instruction files of subfolders that a session has read already.
    pub(crate) told_instructions: Mutex<HashSet<(SessionId, PathBuf)>>,
    /// Instruction files that are not read, and of which the user was told.
    pub(crate) left_out: Mutex<HashSet<PathBuf>>,
    pub(crate) sessions: Sessions,
    /// Turns under way, with what cancels them.
    pub(crate) running: Mutex<HashMap<SessionId, watch::Sender<bool>>>,
    /// Of those, the ones whose model request failed and waits to be sent again.
    pub(crate) retrying: Mutex<HashMap<SessionId, SessionStatus>>,
    /// How to reach the turns under way.
    pub(crate) steering: Mutex<HashMap<SessionId, crate::compaction::ask::Steering>>,
    /// Nothing new begins any more.
    pub(crate) closing: AtomicBool,
    /// Another agent takes its place. Set under the lock of `running`, as `at_work` is counted.
    pub(crate) retired: AtomicBool,
    pub(crate) at_work: AtomicUsize,
    /// Logins that are not over.
    pub(crate) waiting_logins: crate::session::drain::WaitingLogins,
    /// A turn was cancelled: whoever did that does not want to wait for titles.
    pub(crate) hurry: AtomicBool,
    /// How many calls of plugins are open for a session.
    pub(crate) with_plugins: Mutex<HashMap<SessionId, usize>>,
    /// Work beside the turns (titles).
    pub(crate) background: Background,
    /// Points of which plugins are still to be told.
    pub(crate) told: Told,
    /// Taken away at the end: the service holds the agent that holds it.
    pub(crate) sdk: Mutex<Option<Arc<dyn SdkService>>>,
    /// The step that each turn is at, for the audit.
    pub(crate) steps: crate::permission::audit::Steps,
    /// Storing and telling are one step, so that every listener sees the order of the log.
    pub(crate) telling: tokio::sync::Mutex<()>,
}

/// A call of a plugin that is open for a session.
pub(crate) struct WithPlugins<'a> {
    inner: &'a Inner,
    id: SessionId,
}

impl Drop for WithPlugins<'_> {
    fn drop(&mut self) {
        let mut open = lock(&self.inner.with_plugins);
        if let Some(count) = open.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.id);
            }
        }
    }
}

impl Inner {
    /// Remembers that a plugin is at work for a session until the guard is dropped.
    pub(crate) fn enter_plugins(&self, id: &SessionId) -> WithPlugins<'_> {
        *lock(&self.with_plugins).entry(id.clone()).or_default() += 1;
        WithPlugins {
            inner: self,
            id: id.clone(),
        }
    }

    /// A plugin is at work for the session.
    pub(crate) fn is_with_plugins(&self, id: &SessionId) -> bool {
        lock(&self.with_plugins).contains_key(id)
    }

    /// Stores records and events in one transaction, then tells the events in order (invariant 6).
    pub(crate) async fn commit(
        &self,
        records: Vec<LogRecord>,
        events: Vec<Event>,
    ) -> Result<(), AgentError> {
        self.commit_with(records, || Ok(events)).await
    }

    /// Like [`Self::commit`], for events that are made from what is stored: nothing else is stored in between.
    pub(crate) async fn commit_with(
        &self,
        records: Vec<LogRecord>,
        events: impl FnOnce() -> Result<Vec<Event>, AgentError>,
    ) -> Result<(), AgentError> {
        self.commit_telling(records, events, |events| events).await
    }

    /// Like [`Self::commit_with`]; `told` says which of the events are told now.
    pub(crate) async fn commit_telling(
        &self,
        mut records: Vec<LogRecord>,
        events: impl FnOnce() -> Result<Vec<Event>, AgentError>,
        told: impl FnOnce(Vec<BusEvent>) -> Vec<BusEvent>,
    ) -> Result<(), AgentError> {
        let _order = self.telling.lock().await;
        let events: Vec<BusEvent> = events()?.into_iter().map(numbered).collect();
        records.extend(
            events
                .iter()
                .filter(|e| !e.event.is_transient())
                .map(|e| LogRecord::Event(Box::new(e.clone()))),
        );
        let entries = self.entries(&events);
        if !records.is_empty() {
            self.store.append(now(), records).await?;
        }
        self.tell(told(events));
        self.tell_entries(entries);
        Ok(())
    }

    /// Tells events that are not stored.
    pub(crate) fn tell(&self, events: Vec<BusEvent>) {
        if events.is_empty() {
            return;
        }
        for event in &events {
            self.bus.tell(Arc::new(event.clone()));
        }
        self.plugins.events(&events);
    }

    /// Records that nothing waits for; they go with the next transaction.
    pub(crate) fn note(&self, records: Vec<LogRecord>) {
        self.store.append_lazily(now(), records);
    }
}

impl Agent {
    /// The folder that it works in.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.inner.place
    }
    /// The project.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.inner.project
    }
    /// The configuration, as the plugins left it.
    #[must_use]
    pub fn config(&self) -> &Loaded {
        &self.inner.config
    }
    /// Agents by name.
    #[must_use]
    pub fn agents(&self) -> &BTreeMap<String, AgentInfo> {
        &self.inner.agents
    }
    /// Commands by name.
    #[must_use]
    pub fn commands(&self) -> &BTreeMap<String, CommandInfo> {
        &self.inner.commands
    }
    /// Skills.
    #[must_use]
    pub fn skills(&self) -> &[outrigger_config::skills::Skill] {
        &self.inner.skills
    }
    /// Where things are kept.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.inner.folders
    }
    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }
    /// What a tool says to models: name, description, schema of its parameters.
    #[must_use]
    pub fn tool_specs(&self) -> Vec<outrigger_protocol::tool::ToolSpec> {
        self.inner.runtime.specs()
    }
    /// The tools in full: what they declare too (D6).
    #[must_use]
    pub fn tool_descriptors(&self) -> Vec<Arc<outrigger_protocol::descriptor::ToolDescriptor>> {
        self.inner.runtime.descriptors()
    }
    /// Models and providers.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.inner.models
    }
    /// Plugins and how far each has come.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.inner.plugins.list()
    }

    /// Every hook point, the program's and those of plugins, with who has a handler there; and the events of plugins.
    #[must_use]
    pub fn plugin_points(&self) -> (Vec<PointRow>, Vec<EventRow>) {
        self.inner.plugins.points()
    }

    /// Which plugins should run, and why the others should not (D2).
    #[must_use]
    pub fn plugin_snapshot(&self) -> &outrigger_plugins::Snapshot {
        &self.inner.admitted
    }

    /// What the hooks of plugins cost since the start, the costliest first (A1).
    #[must_use]
    pub fn plugin_perf(&self) -> Vec<PerfRow> {
        self.inner.plugins.perf()
    }
    /// Names of all tools.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.inner
            .runtime
            .specs()
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    }
    /// Listens to every event from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.inner.bus.listen()
    }
    /// Stores an event and tells it to every listener.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn publish(&self, event: Event) -> Result<(), AgentError> {
        self.inner.commit(Vec::new(), vec![event]).await
    }
    /// Says who answers the SDK requests of plugins.
    pub fn serve_sdk(&self, service: Arc<dyn SdkService>) {
        *lock(&self.inner.sdk) = Some(service);
    }

    /// Ends: work beside the turns gets a moment, plugins are disposed, everything is on disk.
    pub async fn shutdown(&self) {
        self.inner.ptys.close();
        self.finish_turns(Duration::from_secs(3)).await;
        let patience = if self.inner.hurry.load(Ordering::SeqCst) {
            200
        } else {
            5_000
        };
        self.finish_background(Duration::from_millis(patience))
            .await;
        self.inner.told.close();
        let told = self.inner.plugins.end_sessions(Duration::from_secs(5));
        let told = told.await.into_iter();
        self.inner.note(
            told.map(|record| LogRecord::Hook(Box::new(record)))
                .collect(),
        );
        tokio::join!(
            self.inner.plugins.dispose(Duration::from_secs(5)),
            crate::tools::mcp::shutdown(&self.inner),
            crate::tools::lsp::shutdown(&self.inner)
        );
        lock(&self.inner.sdk).take();
        if let Some(settled) = &self.inner.settled {
            settled.end().await;
        }
        self.inner.spawner.end();
        if let Err(error) = self.inner.store.flush(true).await {
            tracing::error!("[store] {error}");
        }
    }

    /// Waits for titles and the like, at most `limit`; what begins meanwhile is waited for too.
    pub async fn finish_background(&self, limit: Duration) {
        self.inner.background.finish(limit).await;
    }

    /// The session, from the store.
    ///
    /// # Errors
    /// [`AgentError::NoSession`] and those of the store.
    pub fn session(&self, id: &SessionId) -> Result<Session, AgentError> {
        self.inner
            .store
            .session(id)?
            .ok_or_else(|| AgentError::NoSession(id.to_string()))
    }
}
