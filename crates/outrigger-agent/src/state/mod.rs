//! State of a running agent.

mod services;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_models::Models;
use outrigger_permissions::agents::AgentInfo;
use outrigger_plugins::{EventRow, PerfRow, PluginStatus, PointRow, ProviderRow};
use outrigger_prompt::command::CommandInfo;
use outrigger_protocol::descriptor::{SandboxProfile, ToolDescriptor};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::{CompletionRecord, LogRecord};
use outrigger_protocol::session::{Project, Session};
use outrigger_session_state::background::Background;
use outrigger_session_state::bus::{Bus, numbered};
use outrigger_session_state::histories::Conversation;
use outrigger_stdx::clock::now_ms;
use outrigger_stdx::sync::lock;
use outrigger_store::Store;
use outrigger_workspace::{Folders, ProjectLocation};
use tokio::sync::broadcast;

pub(crate) use self::services::{
    Catalog, LoginServices, PermissionServices, PluginServices, ProcessServices, ProjectContext,
    SessionServices, ToolServices,
};
use crate::error::AgentError;
use crate::plugin_api::sdk_service::SdkService;

/// A running agent: one project folder, one store, one set of plugins. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    pub(crate) state: Arc<AgentState>,
}

/// What a running agent holds: the log, the event bus, and services grouped by what they serve.
pub(crate) struct AgentState {
    /// Reference to itself, for tasks that outlive a call.
    pub(crate) this: Weak<AgentState>,
    pub(crate) config: Loaded,
    pub(crate) store: Store,
    pub(crate) bus: Bus,
    pub(crate) models: Models,
    pub(crate) project: ProjectContext,
    pub(crate) catalog: Catalog,
    pub(crate) plugins: PluginServices,
    pub(crate) tools: ToolServices,
    pub(crate) permissions: PermissionServices,
    pub(crate) processes: ProcessServices,
    pub(crate) sessions: SessionServices,
    pub(crate) logins: LoginServices,
    /// Background work (titles).
    pub(crate) background: Background,
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
            self.store.append(now_ms(), records).await?;
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
        self.plugins.host.events(&events);
    }

    /// Returns the messages of a session as stored now, sorted by id.
    pub(crate) fn history(&self, id: &SessionId) -> Result<History, AgentError> {
        Ok(self.sessions.histories.messages(&self.store, id)?)
    }

    /// Returns the messages of a session with their summary.
    pub(crate) fn conversation(&self, id: &SessionId) -> Result<Conversation, AgentError> {
        let (histories, worktree) = (&self.sessions.histories, &self.project.location.worktree);
        Ok(histories.conversation(&self.store, worktree, id)?)
    }

    /// Adds records that nothing waits for; they are stored with the next transaction.
    pub(crate) fn note(&self, records: Vec<LogRecord>) {
        self.store.append_lazily(now_ms(), records);
    }
}

impl Agent {
    /// Returns the project location.
    #[must_use]
    pub fn location(&self) -> &ProjectLocation {
        &self.state.project.location
    }
    /// Returns the project.
    #[must_use]
    pub fn project(&self) -> &Project {
        &self.state.project.info
    }
    /// Returns the configuration, as changed by plugins.
    #[must_use]
    pub fn config(&self) -> &Loaded {
        &self.state.config
    }
    /// Agents by name.
    #[must_use]
    pub fn agents(&self) -> &BTreeMap<String, AgentInfo> {
        &self.state.catalog.agents
    }
    /// Commands by name.
    #[must_use]
    pub fn commands(&self) -> &BTreeMap<String, CommandInfo> {
        &self.state.catalog.commands
    }
    /// Returns the skills.
    #[must_use]
    pub fn skills(&self) -> &[outrigger_config::skills::Skill] {
        &self.state.catalog.skills
    }
    /// Returns the folders for configuration, data and caches.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.state.project.folders
    }
    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.state.store
    }
    /// Returns the tools as described to models: name, description, parameter schema.
    #[must_use]
    pub fn tool_specs(&self) -> Vec<outrigger_protocol::tool::ToolSpec> {
        self.state.tools.runtime.specs()
    }
    /// Returns the full tool descriptors, including their declarations (D6).
    #[must_use]
    pub fn tool_descriptors(&self) -> Vec<Arc<ToolDescriptor>> {
        let holds = match self.state.config.settings.tools.sandbox {
            Profile::Full => SandboxProfile::NoIsolation,
            Profile::WorkspaceWrite => SandboxProfile::WorkspaceWrite,
            Profile::ReadOnly => SandboxProfile::ReadOnly,
        };
        let mut descriptors = self.state.tools.runtime.descriptors();
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
        self.state.plugins.host.list()
    }

    /// Returns every hook point, of the program and of plugins, with its handlers, and the events of plugins.
    #[must_use]
    pub fn plugin_points(&self) -> (Vec<PointRow>, Vec<EventRow>) {
        self.state.plugins.host.points()
    }

    /// Returns the providers that plugins implement, with what their manifests declare.
    #[must_use]
    pub fn plugin_providers(&self) -> Vec<ProviderRow> {
        self.state.plugins.host.provider_rows()
    }

    /// Returns which plugins should run, and why the others should not (D2).
    #[must_use]
    pub fn plugin_snapshot(&self) -> &outrigger_plugins::Snapshot {
        &self.state.plugins.admitted
    }

    /// Returns the cost of plugin hooks since the start, most expensive first (A1).
    #[must_use]
    pub fn plugin_perf(&self) -> Vec<PerfRow> {
        self.state.plugins.host.perf()
    }
    /// Returns the names of all tools.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.state
            .tools
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
        *lock(&self.state.plugins.sdk) = Some(service);
    }

    /// Returns the messages of a session as stored now, sorted by id. Messages that have not changed since the last call are not
    /// read again.
    ///
    /// # Errors
    /// Those of the store.
    pub fn history(&self, id: &SessionId) -> Result<History, AgentError> {
        self.state.history(id)
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
