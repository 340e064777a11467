//! All configured servers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_sandbox::Spawner;
use outrigger_stdx::sync::lock;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::ServerConfig;
use crate::error::McpError;
use crate::launch::Launcher;
use crate::oauth::{LoginSettings, TokenStore};
use crate::server::{Server, ServerTool, Status, Surroundings};

/// How long the start of a session waits for a server that sets no timeout. It continues to start after that.
const SESSION_START: Duration = Duration::from_secs(5);

/// The environment in which servers are started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Starts the processes.
    pub spawner: Spawner,
    /// Working directory of the servers.
    pub directory: PathBuf,
    /// Decides how each local server is started; `None`: in `directory`, by `spawner`.
    pub launcher: Option<Arc<dyn Launcher>>,
    /// The variables that every server gets (see [`outrigger_sandbox::env::allow_list_of`]), in addition to its configured
    /// ones.
    pub env: Vec<(OsString, OsString)>,
    /// Timeout of calls of servers that set none (`experimental.mcp_timeout`); 60 s if `None`.
    pub call_timeout: Option<Duration>,
    /// The stored logins.
    pub tokens: TokenStore,
    /// The user's settings for logins, by server.
    pub logins: BTreeMap<String, LoginSettings>,
}

/// The servers of a session. Dropping it kills their processes.
pub struct McpServers {
    around: Surroundings,
    inside: Mutex<Inside>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inside {
    servers: Vec<Arc<Server>>,
    // First starts in progress, and shutdowns of removed servers.
    tasks: JoinSet<()>,
}

fn millis(timeout: Option<Duration>) -> u64 {
    timeout.map_or(0, |timeout| {
        u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
    })
}

impl McpServers {
    /// Starts the servers of `mcp` in the background, all at once. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(entries: &Map<String, Value>, options: Options) -> Self {
        let servers = Self {
            around: Surroundings {
                spawner: options.spawner,
                directory: options.directory,
                launcher: options.launcher,
                env: options.env,
                call: Arc::new(AtomicU64::new(millis(options.call_timeout))),
                tokens: options.tokens,
                logins: Arc::new(options.logins),
                unreached: Arc::default(),
            },
            inside: Mutex::default(),
            changes: watch::Sender::new(0),
        };
        servers.configure(entries);
        servers
    }

    /// Changes the timeout of calls of servers that set none, including running calls.
    pub fn limit_calls(&self, timeout: Option<Duration>) {
        self.around.call.store(millis(timeout), Ordering::Relaxed);
    }

    /// Applies the current configuration (`config` hooks may add, change and remove servers): new and changed servers are
    /// started, removed and changed ones are ended, the rest is unchanged.
    pub fn configure(&self, entries: &Map<String, Value>) {
        let mut inside = self.inside();
        let Inside { servers, tasks } = &mut *inside;
        let mut before = std::mem::take(servers);
        for (name, entry) in entries {
            let same = before
                .iter()
                .position(|server| server.name == *name && server.entry == *entry);
            if let Some(at) = same {
                servers.push(before.swap_remove(at));
                continue;
            }
            if let Some(server) =
                Server::new(name, entry, self.around.clone(), self.changes.clone())
            {
                tasks.spawn(Arc::clone(&server).run());
                servers.push(server);
            }
        }
        for server in before {
            tasks.spawn(async move { server.stop(Duration::ZERO).await });
        }
        drop(inside);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Adds or replaces a server, and waits for its start.
    ///
    /// # Errors
    /// [`McpError::Config`] for an entry without a `type`.
    pub async fn add(&self, name: &str, entry: &Value) -> Result<Status, McpError> {
        // The caller gets an error; an entry of the configuration is listed as failed instead.
        ServerConfig::read(name, entry)?;
        let made = Server::new(name, entry, self.around.clone(), self.changes.clone());
        let server = made.ok_or_else(|| McpError::Config {
            server: name.to_owned(),
            reason: "its entry has no `type`".to_owned(),
        })?;
        let old = {
            let mut inside = self.inside();
            let Inside { servers, tasks } = &mut *inside;
            let old = match servers.iter_mut().find(|known| known.name == name) {
                Some(known) => Some(std::mem::replace(known, Arc::clone(&server))),
                None => {
                    servers.push(Arc::clone(&server));
                    None
                }
            };
            tasks.spawn(Arc::clone(&server).run());
            old
        };
        if let Some(old) = old {
            old.stop(Duration::ZERO).await;
        }
        server.settled().await;
        Ok(server.status())
    }

    /// Enables a server and restarts it, or disables it.
    ///
    /// # Errors
    /// [`McpError::Unknown`].
    pub async fn switch(&self, name: &str, on: bool) -> Result<Status, McpError> {
        let server = self.find(name)?;
        server.switch(on).await;
        Ok(server.status())
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<Server>, McpError> {
        let servers = &self.inside().servers;
        servers
            .iter()
            .find(|server| server.name == name)
            .cloned()
            .ok_or_else(|| McpError::Unknown {
                server: name.to_owned(),
            })
    }

    pub(crate) fn tokens(&self) -> &TokenStore {
        &self.around.tokens
    }

    pub(crate) fn all(&self) -> Vec<Arc<Server>> {
        self.inside().servers.clone()
    }

    /// Waits until every server is connected or has failed, for each no longer than its timeout (5 s if it sets none). One
    /// that takes longer continues to start.
    pub async fn ready(&self) {
        let servers = self.inside().servers.clone();
        join_all(servers.iter().map(|server| server.ready(SESSION_START))).await;
    }

    /// Returns the tools of all servers that have been connected, in the order of the configuration.
    #[must_use]
    pub fn tools(&self) -> Vec<ServerTool> {
        self.inside()
            .servers
            .iter()
            .flat_map(Server::tools)
            .collect()
    }

    /// Returns the status of every server, in the order of the configuration.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        self.inside()
            .servers
            .iter()
            .map(|server| server.status())
            .collect()
    }

    /// Returns a number that changes whenever [`Self::tools`] may have: a server connected late, or its list changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends all servers: each may end on its own within `grace`, then it is killed with all that it has started.
    pub async fn shutdown(&self, grace: Duration) {
        let (servers, mut tasks) = {
            let mut inside = self.inside();
            (
                std::mem::take(&mut inside.servers),
                std::mem::take(&mut inside.tasks),
            )
        };
        join_all(servers.iter().map(|server| server.stop(grace))).await;
        // A start in progress is dropped, and its process killed.
        tasks.shutdown().await;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }
}
