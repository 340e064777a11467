//! Several projects in one process: one agent for each folder, started by the first request for it.
//!
//! The agents share a store and a spawner, and their events reach all subscribers here, with the folder of origin. A folder's agent
//! can be disposed of at any time; the next request starts a new one (A5: several clients, several projects).

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use axum::Router;
use axum::extract::Request;
use outrigger_agent::{Agent, AgentError, Boot, Folders, Shared};
use outrigger_conversation::Feed;
use outrigger_protocol::event::{BusEvent, CustomEvent, Event};
use outrigger_stdx::path::normalize;
use outrigger_stdx::sync::lock;
use serde_json::json;
use tokio::sync::{broadcast, watch};

use crate::access::scope::Within;
use crate::events::lines::Lines;
use crate::hosting::sdk_service::serve_plugins_of;
use crate::request::directory_of;
use crate::routes::conversation::feed_of_hub;

/// How many events a client may fall behind before its stream is ended.
const CAPACITY: usize = 8192;

/// Published when the agent of a folder has ended.
pub(crate) const DISPOSED: &str = "server.instance.disposed";

/// Creates the start parameters of a folder's agent.
pub type MakeBoot = Arc<dyn Fn(PathBuf) -> Boot + Send + Sync>;

/// An event and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// `None`: of no folder.
    pub(crate) origin: Option<Arc<Origin>>,
    pub(crate) event: Arc<BusEvent>,
    /// Its serialized forms.
    pub(crate) lines: Arc<Lines>,
}

impl Published {
    pub(crate) fn new(origin: Option<Arc<Origin>>, event: Arc<BusEvent>) -> Self {
        Self {
            origin,
            event,
            lines: Arc::default(),
        }
    }
}

/// The agent that published an event.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) directory: PathBuf,
    /// Known once the agent has started.
    pub(crate) project: OnceLock<String>,
}

/// A folder's agent.
#[derive(Clone)]
pub(crate) struct Instance {
    pub(crate) agent: Agent,
    pub(crate) router: Router,
    origin: Arc<Origin>,
}

/// The agents that plugins' requests started, by the root of their project.
pub(super) type StartedAgents = tokio::sync::Mutex<HashMap<PathBuf, Vec<StartedAgent>>>;

/// An agent that a plugin's request started.
pub(super) struct StartedAgent {
    pub(super) folder: PathBuf,
    /// It has not been started yet.
    pub(super) pending: bool,
}

/// The slot of a folder; locked while its agent is started or disposed of.
type Slot = Arc<tokio::sync::Mutex<Option<Instance>>>;

/// The agents of this process, by folder. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<HubState>,
}

pub(crate) struct HubState {
    folders: Folders,
    /// The folder of requests that name none.
    directory: PathBuf,
    make: MakeBoot,
    /// Opened by the first agent: an unused server opens no store.
    shared: Mutex<Option<Shared>>,
    slots: Mutex<HashMap<PathBuf, Slot>>,
    events: broadcast::Sender<Published>,
    closing: watch::Sender<bool>,
    /// Plugins to suspend when a folder's next agent starts, because its last one was only renewed.
    suspended: Mutex<HashMap<PathBuf, Vec<String>>>,
    by_plugins: StartedAgents,
    /// New entries of conversations; created with the store.
    feed: Mutex<Option<Feed>>,
}

impl Hub {
    /// Creates a hub without agents. `directory` is the folder of requests that name none.
    #[must_use]
    pub fn new(folders: Folders, directory: PathBuf, make: MakeBoot) -> Self {
        let directory = directory.canonicalize().unwrap_or(directory);
        Self {
            inner: Arc::new(HubState {
                folders,
                directory,
                make,
                shared: Mutex::default(),
                slots: Mutex::default(),
                events: broadcast::channel(CAPACITY).0,
                closing: watch::Sender::new(false),
                suspended: Mutex::default(),
                by_plugins: StartedAgents::default(),
                feed: Mutex::default(),
            }),
        }
    }

    /// Returns the folders of the program.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.inner.folders
    }

    /// Resolves the folder of a request: absolute, and without links if it exists. The server's own folder and one that has or had
    /// an agent stay the same even after a link has replaced them: the request is then refused, and no client sees the link's
    /// target.
    #[must_use]
    pub fn resolve(&self, named: Option<&str>) -> PathBuf {
        let path = match named.filter(|name| !name.is_empty()) {
            Some(name) => self.inner.directory.join(name),
            None => self.inner.directory.clone(),
        };
        let goes_up = path.components().any(|it| it == Component::ParentDir);
        let named = normalize(&path);
        if !goes_up && self.keeps(&named) {
            named
        } else {
            path.canonicalize().unwrap_or(named)
        }
    }

    /// Returns the folder of a request: for a plugin the one verified as its own, otherwise the named one.
    pub(crate) fn folder_of(&self, request: &Request) -> PathBuf {
        match request.extensions().get::<Within>() {
            Some(Within(folder)) => folder.clone(),
            None => self.resolve(directory_of(request).as_deref()),
        }
    }

    /// Returns the start parameters for a folder's agent.
    #[must_use]
    pub fn boot(&self, directory: PathBuf) -> Boot {
        (self.inner.make)(directory)
    }

    /// Returns the agent of a folder, starting it if there is none. Concurrent requests wait for the same start, which continues if
    /// its initiator disconnects. A failed start can be retried.
    pub(crate) async fn instance(&self, directory: &Path) -> Result<Instance, AgentError> {
        let slot = Arc::clone(
            lock(&self.inner.slots)
                .entry(directory.to_path_buf())
                .or_default(),
        );
        let mut occupant = slot.lock_owned().await;
        if let Some(instance) = &*occupant {
            return Ok(instance.clone());
        }
        let (hub, directory) = (self.clone(), directory.to_path_buf());
        let task = tokio::spawn(async move {
            let instance = hub.start(directory).await?;
            *occupant = Some(instance.clone());
            Ok(instance)
        });
        task.await
            .unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    /// Starts the agent of the default folder before any request.
    ///
    /// # Errors
    /// Those of [`Agent::boot`].
    pub async fn start_own(&self) -> Result<(), AgentError> {
        let directory = self.inner.directory.clone();
        self.instance(&directory).await.map(drop)
    }

    /// Returns the agent of a folder, if it runs.
    pub(crate) async fn running(&self, directory: &Path) -> Option<Instance> {
        let slot = lock(&self.inner.slots).get(directory).cloned()?;
        slot.lock().await.clone()
    }

    async fn start(&self, directory: PathBuf) -> Result<Instance, AgentError> {
        if *self.inner.closing.borrow() {
            return Err(AgentError::Lost("the server is shutting down".to_owned()));
        }
        let origin = Arc::new(Origin {
            directory: directory.clone(),
            project: OnceLock::new(),
        });
        // Found before anything of the other folder is read, if the link stays.
        if directory.canonicalize().is_ok_and(|real| real != directory) {
            return Err(AgentError::Moved(directory.display().to_string()));
        }
        let mut boot = self.boot(directory);
        boot.shared = Some(self.shared()?);
        let (events, from) = (self.inner.events.clone(), Arc::clone(&origin));
        let feed = self.feed()?;
        boot.sink = Some(Arc::new(move |event| {
            feed.heard(event);
            // No listener is not an error.
            let _ = events.send(Published::new(Some(Arc::clone(&from)), Arc::clone(event)));
        }));
        let agent = Agent::boot(boot).await?;
        // The request was for a folder: a link in its place points to another one. Whether the link is still there does not
        // matter, because the agent stays in the folder that it was started in.
        if agent.location().directory != origin.directory {
            agent.shutdown().await;
            return Err(AgentError::Moved(origin.directory.display().to_string()));
        }
        let suspended = lock(&self.inner.suspended).remove(&origin.directory);
        for plugin in suspended.unwrap_or_default() {
            // A removed plugin cannot be suspended.
            let is_there = agent.plugins().iter().any(|it| it.id == plugin);
            if is_there && let Err(error) = agent.suspend_plugin(&plugin).await {
                tracing::warn!("[plugin] {plugin} was suspended and runs now: {error}");
            }
        }
        let _ = origin.project.set(agent.project().id.clone());
        serve_plugins_of(&agent, self);
        Ok(Instance {
            router: crate::router(agent.clone()),
            agent,
            origin,
        })
    }

    /// Returns store and spawner of this process.
    ///
    /// # Errors
    /// The store cannot be used, or the process cannot start others.
    pub fn shared(&self) -> Result<Shared, AgentError> {
        let mut shared = lock(&self.inner.shared);
        if let Some(shared) = &*shared {
            return Ok(shared.clone());
        }
        let opened = Shared::open(&self.inner.folders)?;
        *shared = Some(opened.clone());
        Ok(opened)
    }

    /// Returns the feed of conversations in all folders.
    pub(crate) fn feed(&self) -> Result<Feed, AgentError> {
        let mut feed = lock(&self.inner.feed);
        if let Some(feed) = &*feed {
            return Ok(feed.clone());
        }
        let made = feed_of_hub(self.shared()?.store().clone(), self);
        *feed = Some(made.clone());
        Ok(made)
    }

    pub(crate) fn weak(&self) -> Weak<HubState> {
        Arc::downgrade(&self.inner)
    }

    pub(crate) fn of(inner: Arc<HubState>) -> Self {
        Self { inner }
    }

    /// Disposes of a folder's agent: cancels its turns, disposes of its plugins, and notifies all clients. Continues if the caller
    /// disconnects.
    pub(crate) async fn dispose(&self, directory: &Path) {
        self.dispose_where(directory, |_| true, false).await;
    }

    /// Like [`Self::dispose`], unless the agent is in use. Suspended plugins are also suspended in the next agent.
    pub(crate) async fn dispose_idle(&self, directory: &Path) -> Option<Arc<Origin>> {
        self.dispose_where(directory, Agent::retire, true).await
    }

    /// Returns the running agents, except those that are being started or disposed of.
    pub(crate) fn running_now(&self) -> Vec<(PathBuf, Instance)> {
        let slots = lock(&self.inner.slots);
        let running = slots.iter().filter_map(|(directory, slot)| {
            Some((directory.clone(), slot.try_lock().ok()?.clone()?))
        });
        running.collect()
    }

    /// Returns whether a folder has an agent, including one that is being started or disposed of.
    pub(crate) fn knows(&self, directory: &Path) -> bool {
        let slots = lock(&self.inner.slots);
        let slot = slots.get(directory);
        slot.is_some_and(|slot| slot.try_lock().map_or(true, |occupant| occupant.is_some()))
    }

    /// Returns whether a folder is the server's own, or has or had an agent.
    fn keeps(&self, directory: &Path) -> bool {
        directory == self.inner.directory || lock(&self.inner.slots).contains_key(directory)
    }

    /// Returns the agents that plugins' requests started.
    pub(super) fn by_plugins(&self) -> &StartedAgents {
        &self.inner.by_plugins
    }

    async fn dispose_where(
        &self,
        directory: &Path,
        fits: impl Fn(&Agent) -> bool + Send + 'static,
        renews: bool,
    ) -> Option<Arc<Origin>> {
        let slot = lock(&self.inner.slots).get(directory).cloned()?;
        let hub = self.clone();
        let task = tokio::spawn(async move {
            let mut occupant = slot.lock_owned().await;
            if !occupant.as_ref().is_some_and(|it| fits(&it.agent)) {
                return None;
            }
            let instance = occupant.take()?;
            if renews {
                let suspended = instance.agent.suspended_plugins();
                lock(&hub.inner.suspended).insert(instance.origin.directory.clone(), suspended);
            }
            instance.agent.shutdown().await;
            let directory = instance.origin.directory.to_string_lossy().into_owned();
            hub.publish(
                Some(Arc::clone(&instance.origin)),
                DISPOSED,
                json!({ "directory": directory }),
            );
            Some(instance.origin)
        });
        task.await.unwrap_or_else(|lost| {
            tracing::error!("[server] an agent was not disposed of: {lost}");
            None
        })
    }

    /// Disposes of every agent, and publishes `global.disposed`.
    pub(crate) async fn dispose_all(&self) {
        let directories: Vec<PathBuf> = lock(&self.inner.slots).keys().cloned().collect();
        futures_util::future::join_all(directories.iter().map(|d| self.dispose(d))).await;
        self.publish(None, "global.disposed", json!({}));
    }

    /// Publishes an event that is not stored.
    pub(crate) fn publish(
        &self,
        origin: Option<Arc<Origin>>,
        kind: &str,
        properties: serde_json::Value,
    ) {
        let event = Arc::new(fresh(kind, properties));
        let _ = self.inner.events.send(Published::new(origin, event));
    }

    /// Subscribes to the events of every folder.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Published> {
        self.inner.events.subscribe()
    }

    /// Returns a channel that changes when the server ends.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.inner.closing.subscribe()
    }

    /// Ends streams and agents: cancels turns, disposes of plugins, flushes everything to disk. Nothing new starts.
    pub async fn close(&self) {
        self.inner.closing.send_replace(true);
        self.dispose_all().await;
        lock(&self.inner.shared).take();
    }
}

/// Creates an event of the server itself.
pub(crate) fn fresh(kind: &str, properties: serde_json::Value) -> BusEvent {
    BusEvent {
        id: outrigger_agent::ids::event(),
        event: Event::Custom(CustomEvent {
            depth: 0,
            kind: kind.to_owned(),
            properties: properties.as_object().cloned().unwrap_or_default(),
        }),
    }
}
