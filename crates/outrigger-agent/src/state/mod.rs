//! State of a running agent.

pub(crate) mod histories;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_files::sync::lock;
use outrigger_mcp_tools::SkillServers;
use outrigger_models::Models;
use outrigger_permissions::agents::AgentInfo;
use outrigger_plugins::{EventRow, PerfRow, PluginStatus, Plugins, PointRow, ProviderRow};
use outrigger_protocol::descriptor::{SandboxProfile, ToolDescriptor};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::{CompletionRecord, LogRecord};
use outrigger_protocol::message::MessagePath;
use outrigger_protocol::session::{Project, Session};
use outrigger_sandbox::Spawner;
use outrigger_store::Store;
use outrigger_tools::ToolRuntime;
use outrigger_workspace::Folders;
use outrigger_workspace::ProjectLocation;
use tokio::sync::broadcast;

use self::histories::Histories;
use crate::error::AgentError;
use crate::permission::answering::Answering;
use crate::plugin_api::sdk_service::SdkService;
use outrigger_contributions::message_changes::MessageChanges;
use outrigger_permissions::questions::{Questions, UserQuestions};
use outrigger_prompt::command::CommandInfo;
use outrigger_session_state::background::Background;
use outrigger_session_state::bus::{Bus, numbered};
use outrigger_session_state::deferred_events::DeferredEvents;
use outrigger_session_state::logins::{PendingLogin, WaitingLogins};
use outrigger_session_state::notifications::Notifications;
use outrigger_session_state::plugin_calls::PluginCalls;
use outrigger_session_state::prompt_queue::WaitingPrompts;
use outrigger_session_state::session_locks::SessionLocks;
use outrigger_session_state::turns::Turns;
use outrigger_workspace::clock::now;

/// A running agent: one project folder, one store, one set of plugins. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) state: Arc<AgentState>,
}

pub(crate) struct AgentState {
    /// Reference to itself, for tasks that outlive a call.
    pub(crate) this: Weak<AgentState>,
    pub(crate) place: ProjectLocation,
    /// Project folder, held open; `None` if it did not exist.
    pub(crate) anchor: Option<Arc<outrigger_sandbox::Anchor>>,
    /// Path and host rules: allowed, denied, or asked about.
    pub(crate) access: outrigger_permissions::access::Access,
    pub(crate) project: Project,
    pub(crate) folders: Folders,
    /// Changes by plugins to user messages while a turn runs.
    pub(crate) message_changes: MessageChanges,
    /// Set when plugins have prepared their providers.
    pub(crate) providers: tokio::sync::OnceCell<()>,
    /// Logins that wait for their user, by provider.
    pub(crate) logins: Mutex<BTreeMap<String, Arc<PendingLogin>>>,
    pub(crate) config: Loaded,
    /// Rules from the user's files, whatever plugins changed.
    pub(crate) user_rules: outrigger_permissions::pinned_rules::UserRules,
    /// Sandboxes of what plugins contribute.
    pub(crate) sandboxes: outrigger_sandbox::SandboxOverrides,
    pub(crate) agents: BTreeMap<String, AgentInfo>,
    pub(crate) commands: BTreeMap<String, CommandInfo>,
    pub(crate) skills: Vec<outrigger_config::skills::Skill>,
    pub(crate) store: Store,
    /// Messages of the sessions in use.
    pub(crate) histories: Histories,
    pub(crate) bus: Bus,
    pub(crate) spawner: Spawner,
    /// Like `spawner`, for commands, which may reach the hosts of `tools.hosts`.
    pub(crate) commands_spawner: Spawner,
    pub(crate) models: Models,
    pub(crate) plugins: Plugins,
    /// Tool calls of plugins that are in progress.
    pub(crate) plugin_calls: Arc<PluginCalls>,
    /// Decision on which plugins run, made before any was started (D2).
    pub(crate) admitted: outrigger_plugins::Snapshot,
    pub(crate) mcp: outrigger_mcp::McpServers,
    /// Decides in which sandbox MCP servers start.
    pub(crate) server_launcher: Arc<outrigger_mcp_tools::ServerLauncher>,
    pub(crate) skill_servers: SkillServers,
    /// Parent agents of the agents of sessions.
    pub(crate) callers: outrigger_permissions::callers::Callers,
    /// Events of subagents that are published after their calls.
    pub(crate) deferred: DeferredEvents,
    pub(crate) lsp: outrigger_lsp::Lsp,
    pub(crate) formatters: outrigger_workspace::formatters::Formatters,
    /// Servers of `.mcp.json` that are not started, with what to do about each.
    pub(crate) mcp_waiting: BTreeMap<String, String>,
    pub(crate) runtime: ToolRuntime,
    pub(crate) temporary: Arc<outrigger_permissions::command_sandbox::Temporary>,
    /// Services of this machine that commands can reach.
    pub(crate) loopback: outrigger_sandbox::Loopback,
    /// Prompts that wait for the turn before them.
    pub(crate) waiting: WaitingPrompts,
    /// Options of shell commands.
    pub(crate) shell: outrigger_tools::builtin::Options,
    pub(crate) snapshots: outrigger_workspace::snapshot::Snapshots,
    pub(crate) workspace_trust: Option<Arc<outrigger_permissions::workspace_trust::WorkspaceTrust>>,
    pub(crate) answering: Answering,
    pub(crate) questions: Questions,
    /// Terminals of clients.
    pub(crate) ptys: outrigger_workspace::terminals::Ptys,
    pub(crate) user_questions: UserQuestions,
    /// Instruction files of subfolders that a session has read already.
    pub(crate) shown_instructions: Mutex<HashSet<(SessionId, PathBuf)>>,
    /// Instruction files that are not read and were reported to the user.
    pub(crate) skipped_instructions: Mutex<HashSet<PathBuf>>,
    /// Allow one turn of a session at a time.
    pub(crate) session_locks: SessionLocks,
    /// Turns in progress.
    pub(crate) turns: Turns,
    /// Logins in progress.
    pub(crate) waiting_logins: WaitingLogins,
    /// Background work (titles).
    pub(crate) background: Background,
    /// Notifications to plugins that are still to be sent.
    pub(crate) notifications: Notifications,
    /// Cleared at shutdown: the service holds the agent that holds it.
    pub(crate) sdk: Mutex<Option<Arc<dyn SdkService>>>,
    /// Makes storing and publishing one step, so that every listener sees the order of the log.
    pub(crate) publish_order: tokio::sync::Mutex<()>,
}

impl AgentState {
    /// Stores records and events in one transaction, then publishes the events in order (invariant 6).
    pub(crate) async fn commit(
        &self,
        records: Vec<LogRecord>,
        events: Vec<Event>,
    ) -> Result<(), AgentError> {
        self.commit_with(records, || Ok(events)).await
    }

    /// Like [`Self::commit`], for events derived from the stored state: nothing else is stored in between.
    pub(crate) async fn commit_with(
        &self,
        records: Vec<LogRecord>,
        events: impl FnOnce() -> Result<Vec<Event>, AgentError>,
    ) -> Result<(), AgentError> {
        let completed = self
            .commit_publishing(records, events, |events| events)
            .await?;
        self.notify_completions(completed);
        Ok(())
    }

    /// Like [`Self::commit_with`]; `now_published` selects the events that are published now. Returns the messages that the
    /// events completed: the caller notifies plugins of them ([`Self::notify_completions`]).
    pub(crate) async fn commit_publishing(
        &self,
        mut records: Vec<LogRecord>,
        events: impl FnOnce() -> Result<Vec<Event>, AgentError>,
        now_published: impl FnOnce(Vec<BusEvent>) -> Vec<BusEvent>,
    ) -> Result<Vec<CompletionRecord>, AgentError> {
        let _order = self.publish_order.lock().await;
        let events: Vec<BusEvent> = events()?.into_iter().map(numbered).collect();
        records.extend(
            events
                .iter()
                .filter(|e| !e.event.is_transient())
                .map(|e| LogRecord::Event(Box::new(e.clone()))),
        );
        let entries = self.entries(&events);
        let completed = self.completions(&mut records, &events);
        if !records.is_empty() {
            self.store.append(now(), records).await?;
        }
        self.broadcast(now_published(events));
        self.notify_entries(entries);
        Ok(completed)
    }

    /// Stores and publishes events even if the caller is cancelled: every client would miss an event that is stored but not
    /// published.
    pub(crate) async fn commit_whole(self: &Arc<Self>, events: Vec<Event>) {
        let state = Arc::clone(self);
        let task = tokio::spawn(async move { state.commit(Vec::new(), events).await });
        match task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("{error}"),
            Err(error) => tracing::error!("[events] {error}"),
        }
    }

    /// Stores and publishes events in the background, for callers that cannot wait; shutdown waits for it.
    pub(crate) fn commit_beside(self: &Arc<Self>, events: Vec<Event>) {
        // Without a runtime the process is ending and the log is closed.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let state = Arc::clone(self);
        self.background
            .spawn(async move { state.commit_whole(events).await });
    }

    /// Publishes events that are not stored.
    pub(crate) fn broadcast(&self, events: Vec<BusEvent>) {
        if events.is_empty() {
            return;
        }
        for event in &events {
            self.bus.publish(Arc::new(event.clone()));
        }
        self.plugins.events(&events);
    }

    /// Returns the project's folders as messages of the model name them.
    pub(crate) fn message_path(&self) -> MessagePath {
        MessagePath {
            cwd: self.place.directory.to_string_lossy().into_owned(),
            root: self.place.worktree.to_string_lossy().into_owned(),
        }
    }

    /// Adds records that nothing waits for; they are stored with the next transaction.
    pub(crate) fn note(&self, records: Vec<LogRecord>) {
        self.store.append_lazily(now(), records);
    }
}

impl Agent {
    /// Returns the project location.
    #[must_use]
    pub fn place(&self) -> &ProjectLocation {
        &self.state.place
    }
    /// Returns the project.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.state.project
    }
    /// Returns the configuration, as changed by plugins.
    #[must_use]
    pub fn config(&self) -> &Loaded {
        &self.state.config
    }
    /// Agents by name.
    #[must_use]
    pub fn agents(&self) -> &BTreeMap<String, AgentInfo> {
        &self.state.agents
    }
    /// Commands by name.
    #[must_use]
    pub fn commands(&self) -> &BTreeMap<String, CommandInfo> {
        &self.state.commands
    }
    /// Returns the skills.
    #[must_use]
    pub fn skills(&self) -> &[outrigger_config::skills::Skill] {
        &self.state.skills
    }
    /// Returns the folders for configuration, data and caches.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.state.folders
    }
    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.state.store
    }
    /// Returns the tools as described to models: name, description, parameter schema.
    #[must_use]
    pub fn tool_specs(&self) -> Vec<outrigger_protocol::tool::ToolSpec> {
        self.state.runtime.specs()
    }
    /// Returns the full tool descriptors, including their declarations (D6).
    #[must_use]
    pub fn tool_descriptors(&self) -> Vec<Arc<ToolDescriptor>> {
        let holds = match self.state.config.settings.tools.sandbox {
            Profile::Full => SandboxProfile::NoIsolation,
            Profile::WorkspaceWrite => SandboxProfile::WorkspaceWrite,
            Profile::ReadOnly => SandboxProfile::ReadOnly,
        };
        let mut descriptors = self.state.runtime.descriptors();
        for tool in &mut descriptors {
            if tool.declared.constraints.sandbox_profile == SandboxProfile::Configured {
                Arc::make_mut(tool).declared.constraints.sandbox_profile = holds;
            }
        }
        descriptors
    }
    /// Returns the models and providers.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.state.models
    }
    /// Returns the plugins with their status.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.state.plugins.list()
    }

    /// Returns every hook point, of the program and of plugins, with its handlers, and the events of plugins.
    #[must_use]
    pub fn plugin_points(&self) -> (Vec<PointRow>, Vec<EventRow>) {
        self.state.plugins.points()
    }

    /// Returns the providers that plugins implement, with what their manifests declare.
    #[must_use]
    pub fn plugin_providers(&self) -> Vec<ProviderRow> {
        self.state.plugins.provider_rows()
    }

    /// Returns which plugins should run, and why the others should not (D2).
    #[must_use]
    pub fn plugin_snapshot(&self) -> &outrigger_plugins::Snapshot {
        &self.state.admitted
    }

    /// Returns the cost of plugin hooks since the start, most expensive first (A1).
    #[must_use]
    pub fn plugin_perf(&self) -> Vec<PerfRow> {
        self.state.plugins.perf()
    }
    /// Returns the names of all tools.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.state
            .runtime
            .specs()
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    }
    /// Subscribes to every event from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.state.bus.listen()
    }
    /// Stores an event and publishes it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn publish(&self, event: Event) -> Result<(), AgentError> {
        self.state.commit(Vec::new(), vec![event]).await
    }
    /// Sets the service that answers SDK requests of plugins.
    pub fn serve_sdk(&self, service: Arc<dyn SdkService>) {
        *lock(&self.state.sdk) = Some(service);
    }

    /// The session, from the store.
    ///
    /// # Errors
    /// [`AgentError::NoSession`] and those of the store.
    pub fn session(&self, id: &SessionId) -> Result<Session, AgentError> {
        self.state
            .store
            .session(id)?
            .ok_or_else(|| AgentError::NoSession(id.to_string()))
    }
}
