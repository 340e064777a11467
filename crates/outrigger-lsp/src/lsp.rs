//! All servers of a project: selecting them by file, starting them, and collecting their results.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_sandbox::Spawner;
use outrigger_sandbox::process_time::{Instant, timeout};
use outrigger_stdx::sync::lock;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::{Client, Start};
use crate::config::{Initial, Server, program, servers};
use crate::content::MaySeeFn;
use crate::error::LspError;
use crate::programs::Programs;

/// Maximum number of restarts of a server.
const RESTARTS: u32 = 3;

/// Timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A server's first response (OpenCode's 45 s); it starts in the background.
    pub start: Duration,
    /// How long a caller waits for a server that is being started.
    pub ready: Duration,
    /// How long a caller waits for the diagnostics of a file (OpenCode's 5 s).
    pub document: Duration,
    /// Like `document`, for a server that was silent before.
    pub after_silences: Duration,
    /// A request (OpenCode's 3 s).
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(45),
            ready: Duration::from_secs(10),
            document: Duration::from_secs(5),
            after_silences: Duration::from_millis(300),
            answer: Duration::from_secs(3),
        }
    }
}

/// The start parameters of servers.
#[derive(Clone)]
pub struct Options {
    /// Starts processes.
    pub spawner: Spawner,
    /// Working directory of the project.
    pub directory: PathBuf,
    /// Root of the project.
    pub worktree: PathBuf,
    /// Environment of the servers, including the `PATH` on which their programs are searched.
    pub env: Vec<(OsString, OsString)>,
    /// Limits.
    pub limits: Limits,
    /// Which programs may be started.
    pub programs: Programs,
    /// Which files of the project are sent to servers.
    pub may_see: MaySeeFn,
}

/// A server that was started, in the form of `GET /lsp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Its identifier in the configuration.
    pub id: String,
    /// The same identifier.
    pub name: String,
    /// Its root, relative to the working directory.
    pub root: String,
    /// `connected` or `error`.
    pub status: &'static str,
    /// Why it is unusable, for display; not part of OpenCode's response.
    #[serde(skip)]
    pub error: Option<LspError>,
}

enum State {
    Starting,
    Up(Arc<Client>),
    Off(LspError),
}

pub(crate) struct Slot {
    server: Server,
    root: PathBuf,
    state: Mutex<(State, u32)>,
    changed: watch::Sender<u64>,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, (State, u32)> {
        lock(&self.state)
    }

    fn set(&self, state: State) {
        self.state().0 = state;
        self.changed.send_modify(|count| *count += 1);
    }

    fn up(&self) -> Option<Arc<Client>> {
        match &self.state().0 {
            State::Up(client) if client.gone().is_none() => Some(Arc::clone(client)),
            _ => None,
        }
    }
}

struct LspState {
    servers: Vec<Server>,
    options: Options,
    slots: Mutex<BTreeMap<(String, PathBuf), Arc<Slot>>>,
    /// Known servers without an installed program, so that it is searched once.
    absent: Mutex<BTreeSet<String>>,
    changes: watch::Sender<u64>,
    /// Tasks that start servers.
    starts: Mutex<JoinSet<()>>,
}

/// The language servers of a project. Cheap to clone.
#[derive(Clone)]
pub struct Lsp(Arc<LspState>);

impl Lsp {
    /// Reads the configuration (`lsp` of `opencode.json`); starts nothing.
    #[must_use]
    pub fn new(config: Option<&Value>, options: Options) -> Self {
        Self(Arc::new(LspState {
            servers: servers(config),
            options,
            slots: Mutex::default(),
            absent: Mutex::default(),
            starts: Mutex::default(),
            changes: watch::Sender::new(0),
        }))
    }

    /// Returns whether there is any server.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.0.servers.is_empty()
    }

    /// Returns a counter of started servers; displays of their status subscribe to it.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Notifies the servers of this kind of file of its current content, starting them if necessary, and waits, within
    /// limits, for their diagnostics. Ignores files outside the project.
    pub async fn touch(&self, file: &Path) {
        let limits = self.0.options.limits;
        let each = self.slots_for(file).into_iter().map(|slot| async move {
            let Some(client) = self.ready(&slot, limits.ready).await else {
                return;
            };
            let since = Instant::now();
            if let Some(version) = client.send(file).await
                && !client.wait(file, version, since).await
            {
                tracing::debug!(
                    "[lsp:{}] said nothing of {}",
                    slot.server.id,
                    file.display()
                );
            }
        });
        join_all(each).await;
    }

    /// Like [`Self::touch`], without waiting: a file that was read is likely to be changed.
    pub fn warm(&self, file: &Path) {
        let slots = self.slots_for(file);
        if slots.is_empty() {
            return;
        }
        let (lsp, file) = (self.clone(), file.to_path_buf());
        tokio::spawn(async move {
            for slot in slots {
                if let Some(client) = lsp.ready(&slot, lsp.0.options.limits.start).await {
                    client.send(&file).await;
                }
            }
        });
    }

    /// Returns the diagnostics of all servers, by file.
    #[must_use]
    pub fn diagnostics(&self) -> BTreeMap<PathBuf, Vec<Value>> {
        let mut all: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
        for client in self.slots().iter().filter_map(|slot| slot.up()) {
            for (path, list) in client.diagnostics() {
                all.entry(path).or_default().extend(list);
            }
        }
        all
    }

    /// Returns the servers that were started, or should have been.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let of = |slot: &Arc<Slot>| {
            let error = match &slot.state().0 {
                State::Starting => return None,
                State::Up(client) => client.gone(),
                State::Off(error) => Some(error.clone()),
            };
            let root = slot.root.strip_prefix(&self.0.options.directory);
            Some(Status {
                id: slot.server.id.clone(),
                name: slot.server.id.clone(),
                root: root.unwrap_or(&slot.root).display().to_string(),
                status: if error.is_some() {
                    "error"
                } else {
                    "connected"
                },
                error,
            })
        };
        self.slots().iter().filter_map(of).collect()
    }

    /// Returns symbols of the project by name, from the running servers.
    pub async fn symbols(&self, query: &str) -> Vec<Value> {
        let clients: Vec<_> = self.slots().iter().filter_map(|slot| slot.up()).collect();
        let found = join_all(clients.iter().map(|client| client.symbols(query))).await;
        found.into_iter().flatten().collect()
    }

    /// Ends all servers, by force after `grace`.
    pub async fn shutdown(&self, grace: Duration) {
        // A server that is about to start has a running process.
        let mut starts = std::mem::take(&mut *self.starts());
        starts.shutdown().await;
        let slots = std::mem::take(&mut *self.slots_of());
        let clients: Vec<_> = slots.values().filter_map(|slot| slot.up()).collect();
        join_all(clients.iter().map(|client| client.close(grace))).await;
    }

    pub(crate) fn limits(&self) -> Limits {
        self.0.options.limits
    }

    fn starts(&self) -> MutexGuard<'_, JoinSet<()>> {
        lock(&self.0.starts)
    }

    fn slots_of(&self) -> MutexGuard<'_, BTreeMap<(String, PathBuf), Arc<Slot>>> {
        lock(&self.0.slots)
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots_of().values().cloned().collect()
    }

    pub(crate) fn slots_for(&self, file: &Path) -> Vec<Arc<Slot>> {
        let Options {
            directory,
            worktree,
            ..
        } = &self.0.options;
        // `/` as project means that there is none.
        let inside = file.starts_with(directory)
            || (worktree.parent().is_some() && file.starts_with(worktree));
        let servers = self
            .0
            .servers
            .iter()
            .filter(|server| inside && server.takes(file));
        let slot = |server: &Server| self.slot(server, server.root.of(file, directory, worktree)?);
        servers.filter_map(slot).collect()
    }

    fn slot(&self, server: &Server, root: PathBuf) -> Option<Arc<Slot>> {
        let mut slots = self.slots_of();
        let key = (server.id.clone(), root.clone());
        if let Some(slot) = slots.get(&key) {
            return Some(Arc::clone(slot));
        }
        let mut absent = lock(&self.0.absent);
        if absent.contains(&server.id) {
            return None;
        }
        let start = self.what_to_start(server, &root);
        if start.is_none() {
            absent.insert(server.id.clone());
            return None;
        }
        let slot = Arc::new(Slot {
            server: server.clone(),
            root,
            state: Mutex::new((State::Starting, 0)),
            changed: watch::Sender::new(0),
        });
        slots.insert(key, Arc::clone(&slot));
        self.begin(&slot);
        Some(slot)
    }

    fn what_to_start<'a>(&self, server: &'a Server, root: &'a Path) -> Option<Start<'a>> {
        let options = &self.0.options;
        let var = |wanted: &str| {
            options
                .env
                .iter()
                .rev()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_os_str())
        };
        let program = program(server, root, var("PATH").unwrap_or_default())?;
        let initial = match &server.options {
            Initial::Of(needs) => needs.options(
                root,
                &options.directory,
                var("VIRTUAL_ENV"),
                options.programs.of_project,
            )?,
            Initial::Given(value) => value.clone(),
        };
        let own = server
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Some(Start {
            id: &server.id,
            root,
            program,
            args: server.command.iter().skip(1).cloned().collect(),
            env: options.env.iter().cloned().chain(own).collect(),
            options: initial,
        })
    }

    /// Starts a server in the background; the caller may stop waiting.
    fn begin(&self, slot: &Arc<Slot>) {
        let (lsp, slot) = (self.clone(), Arc::clone(slot));
        let mut starts = self.starts();
        while starts.try_join_next().is_some() {}
        starts.spawn(async move {
            let Some(start) = lsp.what_to_start(&slot.server, &slot.root) else {
                return;
            };
            let options = &lsp.0.options;
            let refusal = options.programs.refusal(start.id, &start.program).await;
            let started = match refusal {
                Some(reason) => Err(LspError::Start {
                    server: slot.server.id.clone(),
                    reason,
                }),
                None => Client::start(start, options).await,
            };
            match started {
                Ok(client) => {
                    tracing::debug!("[lsp:{}] is up in {}", slot.server.id, slot.root.display());
                    slot.set(State::Up(Arc::new(client)));
                    lsp.0.changes.send_modify(|count| *count += 1);
                }
                Err(error) => {
                    // No warning is needed for a server that was not configured.
                    if slot.server.configured {
                        tracing::warn!("[lsp:{}] {error}", slot.server.id);
                    } else {
                        tracing::info!("[lsp:{}] {error}", slot.server.id);
                    }
                    slot.set(State::Off(error));
                }
            }
        });
    }

    /// Returns the server of a slot once it is ready. One that has ended is restarted, a few times.
    pub(crate) async fn ready(&self, slot: &Arc<Slot>, wait: Duration) -> Option<Arc<Client>> {
        let mut changed = slot.changed.subscribe();
        let up = async {
            loop {
                {
                    let mut state = slot.state();
                    match &state.0 {
                        State::Off(_) => return None,
                        State::Starting => {}
                        State::Up(client) => match client.gone() {
                            None => return Some(Arc::clone(client)),
                            Some(error) if state.1 >= RESTARTS => {
                                tracing::warn!("[lsp:{}] {error}; it stays off", slot.server.id);
                                state.0 = State::Off(error);
                                return None;
                            }
                            Some(error) => {
                                tracing::warn!(
                                    "[lsp:{}] {error}; it is started again",
                                    slot.server.id
                                );
                                *state = (State::Starting, state.1 + 1);
                                self.begin(slot);
                            }
                        },
                    }
                }
                if changed.changed().await.is_err() {
                    return None;
                }
            }
        };
        timeout(wait, up).await.ok().flatten()
    }
}
