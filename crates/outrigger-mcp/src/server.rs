//! The life cycle of one configured server: starting, running, failed, restarted. `connect` contains its connection, `status`
//! its listed state.

mod connect;
mod status;
mod unreached;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use outrigger_sandbox::Spawner;
use outrigger_sandbox::process_time::{Instant, timeout};
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::unreached::Unreached;
use crate::config::{ServerConfig, Transport};
use crate::content;
use crate::error::McpError;
use crate::launch::Launcher;
use crate::link::{About, Link, ToolInfo};
use crate::oauth::{Bearer, Login, LoginSettings, TokenStore};
use crate::requests::{self, Answering, Nobody};
use crate::transport::incoming::RootList;
use crate::transport::remote::Way;

pub use status::{State, Status};

/// Start timeout of a server that sets none (OpenCode's).
const START: Duration = Duration::from_secs(30);
/// Call timeout of a server that sets none (that of OpenCode's client).
const CALL: Duration = Duration::from_secs(60);
/// Time from a start timeout until its cause is known.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a disabled server may take to end on its own.
const GRACE: Duration = Duration::from_millis(500);

/// The environment in which servers are started.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) spawner: Spawner,
    pub(crate) directory: PathBuf,
    /// Decides how each is started; `None`: in `directory`, by `spawner`.
    pub(crate) launcher: Option<Arc<dyn Launcher>>,
    /// Variables that every server gets.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Timeout in milliseconds of calls of servers that set none; 0 means the default.
    pub(crate) call: Arc<AtomicU64>,
    /// The stored logins.
    pub(crate) tokens: TokenStore,
    /// The user's settings for logins, by server.
    pub(crate) logins: Arc<BTreeMap<String, LoginSettings>>,
    /// Unreachable servers, until they are logged.
    pub(crate) unreached: Arc<Unreached>,
}

impl Surroundings {
    /// Returns the roots that a server gets: the working directory.
    pub(crate) fn roots(&self) -> RootList {
        let name = self.directory.file_name().unwrap_or_default();
        let uri = reqwest::Url::from_directory_path(&self.directory);
        let root = |uri: reqwest::Url| json!({"uri": uri.as_str().trim_end_matches('/'), "name": name.to_string_lossy()});
        Arc::new(uri.ok().map(root).into_iter().collect())
    }
}

/// A server.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) entry: Value,
    pub(crate) config: Result<ServerConfig, McpError>,
    around: Surroundings,
    /// The proxy of a remote server.
    way: Way,
    /// For a remote server, unless `oauth` is false.
    pub(crate) bearer: Option<Arc<Bearer>>,
    // The login that waits for the user.
    pub(crate) login: Mutex<Option<Arc<Login>>>,
    // One (re)start at a time; calls wait for it.
    gate: tokio::sync::Mutex<()>,
    inside: Mutex<Inside>,
    settled: watch::Sender<bool>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inside {
    link: Option<Arc<Link>>,
    // Values that live as long as its process.
    held: Option<Arc<dyn std::any::Any + Send + Sync>>,
    // Why it is not connected; `None` during the first start.
    error: Option<(McpError, Instant)>,
    tools: Vec<ToolInfo>,
    about: About,
    starts: u32,
    start_ms: Option<u64>,
    stopped: bool,
    // The user has enabled or disabled it since; overrides the configuration.
    switched: Option<bool>,
}

/// A tool of a server.
#[derive(Clone)]
pub struct ServerTool {
    /// Server.
    pub server: String,
    /// Its name on the server. [`crate::tool_name`] returns the one for the model.
    pub name: String,
    /// For the model.
    pub description: String,
    /// The schema of its arguments, according to the server.
    pub input_schema: Value,
    /// The schema of `structuredContent` in its results, if the server declares one.
    pub output_schema: Option<Value>,
    owner: Weak<Server>,
}

impl Server {
    /// Creates a server from an entry; `None` for one that is skipped. Starts nothing.
    pub(crate) fn new(
        name: &str,
        entry: &Value,
        around: Surroundings,
        changes: watch::Sender<u64>,
    ) -> Option<Arc<Self>> {
        let config = ServerConfig::read(name, entry).transpose();
        let config = match config {
            Some(config) => config,
            None if entry.get("enabled").and_then(Value::as_bool) == Some(false) => Ok(off()),
            None => {
                tracing::warn!("[mcp:{name}] passed over: its entry has no `type`");
                return None;
            }
        };
        let mut config = config;
        let mut bearer = None;
        let way = around.spawner.proxy_of(&format!("mcp:{name}"));
        if let Ok(ServerConfig {
            transport:
                Transport::Remote {
                    url,
                    oauth: Some(oauth),
                    ..
                },
            ..
        }) = &config
        {
            let mut oauth = oauth.clone();
            let wrong = |reason| McpError::Config {
                server: name.to_owned(),
                reason,
            };
            let settings = around.logins.get(name).cloned().unwrap_or_default();
            let made = settings.of(url).map_err(wrong).and_then(|settings| {
                *oauth.settings = settings;
                Bearer::new(name, url, oauth, around.tokens.clone(), way.clone())
            });
            match made {
                Ok(made) => bearer = Some(Arc::new(made)),
                Err(error) => config = Err(error),
            }
        }
        Some(Arc::new(Self {
            name: name.to_owned(),
            entry: entry.clone(),
            config,
            around,
            bearer,
            way,
            login: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
            inside: Mutex::default(),
            settled: watch::Sender::new(false),
            changes,
        }))
    }

    /// Performs the first start. Ends when the server is connected or has failed.
    pub(crate) async fn run(self: Arc<Self>) {
        match &self.config {
            Err(error) => self.failed(error.clone()),
            Ok(_) if !self.is_on() => {}
            Ok(_) => {
                let _gate = self.gate.lock().await;
                if self.inside().stopped {
                    return;
                }
                if let Err(error) = self.connect().await {
                    self.log(&error);
                }
            }
        }
        self.settled.send_replace(true);
        self.changed();
    }

    /// Logs why it is not connected.
    pub(crate) fn log(&self, error: &McpError) {
        match error {
            McpError::Unreachable { .. } => self.around.unreached.add(error.clone()),
            _ => tracing::warn!("[mcp:{}] {error}", self.name),
        }
    }

    /// Returns whether it is enabled: by the user's last choice, otherwise as configured.
    pub(crate) fn is_on(&self) -> bool {
        let configured = self.config.as_ref().is_ok_and(|config| config.enabled);
        self.inside().switched.unwrap_or(configured)
    }

    /// Enables and restarts it, or disables and ends it.
    pub(crate) async fn switch(self: &Arc<Self>, on: bool) {
        let old = {
            let mut inside = self.inside();
            inside.switched = Some(on);
            inside.error = None;
            inside.tools.clear();
            inside.about = About::default();
            inside.link.take()
        };
        if let Some(link) = old {
            link.close(GRACE).await;
        }
        if on {
            Arc::clone(self).run().await;
        } else {
            self.changed();
        }
    }

    /// Waits until the first start has ended, for at most the time that the session's start may wait.
    pub(crate) async fn ready(&self, usual: Duration) {
        // A start with a timeout ends on its own, with a cause.
        let own = self.config.as_ref().ok().and_then(|config| config.timeout);
        let wait = own.map_or(usual, |own| own.saturating_add(SETTLE));
        let mut settled = self.settled.subscribe();
        if timeout(wait, settled.wait_for(|done| *done)).await.is_err() {
            tracing::warn!(
                "[mcp:{}] is not up after {} ms; the session begins without its tools",
                self.name,
                wait.as_millis()
            );
        }
    }

    /// Waits until the first start has ended, which it does within its timeout.
    pub(crate) async fn settled(&self) {
        let mut settled = self.settled.subscribe();
        let _ = settled.wait_for(|done| *done).await;
    }

    pub(crate) fn tools(self: &Arc<Self>) -> Vec<ServerTool> {
        let inside = self.inside();
        let tool = |info: &ToolInfo| ServerTool {
            server: self.name.clone(),
            name: info.name.clone(),
            description: info.description.clone(),
            input_schema: info.input_schema.clone(),
            output_schema: info.output_schema.clone(),
            owner: Arc::downgrade(self),
        };
        inside.tools.iter().map(tool).collect()
    }

    /// Ends it permanently.
    pub(crate) async fn stop(&self, grace: Duration) {
        let link = {
            let mut inside = self.inside();
            inside.stopped = true;
            inside.tools.clear();
            inside.link.clone()
        };
        if let Some(link) = link {
            link.close(grace).await;
        }
    }

    pub(crate) fn call_wait(&self) -> Duration {
        let own = self.config.as_ref().ok().and_then(|config| config.timeout);
        let set = self.around.call.load(Ordering::Relaxed);
        let set = Some(set).filter(|ms| *ms > 0).map(Duration::from_millis);
        own.or(set).unwrap_or(CALL)
    }

    fn start_wait(&self) -> Duration {
        self.config
            .as_ref()
            .ok()
            .and_then(|config| config.timeout)
            .unwrap_or(START)
    }

    async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: &Value,
        answering: &dyn Answering,
    ) -> Result<Value, McpError> {
        let params = json!({"name": tool, "arguments": arguments});
        let (asks, inbox) = requests::channel();
        let call = async {
            let wait = self.call_wait();
            match self.live().await?.call(&params, wait, &asks).await {
                // It was refused before it had an effect, so it may be retried.
                Err(McpError::SessionGone { .. }) => {
                    self.live().await?.call(&params, wait, &asks).await
                }
                other => other,
            }
        };
        let result = inbox.during(call, answering).await;
        content::complete(result?).map_err(|reason| McpError::Answer {
            server: self.name.clone(),
            reason,
        })
    }

    fn failed(&self, error: McpError) {
        let mut inside = self.inside();
        inside.link = None;
        inside.error = Some((error, Instant::now()));
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Returns its capabilities, while it is connected.
    pub(crate) fn about(&self) -> Option<(Arc<Link>, About)> {
        let inside = self.inside();
        let link = inside.link.clone().filter(|link| link.closed().is_none())?;
        Some((link, inside.about.clone()))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }
}

fn off() -> ServerConfig {
    ServerConfig {
        transport: Transport::Local {
            command: Vec::new(),
            cwd: None,
            environment: Default::default(),
        },
        enabled: false,
        timeout: None,
    }
}

impl ServerTool {
    /// Calls it. Returns the server's result, with `content` derived from `structuredContent` if it is empty (OpenCode's
    /// rule); the caller checks `isError`. If the future is dropped early, the server gets a cancellation.
    ///
    /// # Errors
    /// Those of the server; one that crashed is restarted first.
    pub async fn call(&self, arguments: &Value) -> Result<Value, McpError> {
        self.call_answering(arguments, &Nobody).await
    }

    /// Like [`Self::call`], with a handler for the server's requests in the meantime.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_answering(
        &self,
        arguments: &Value,
        answering: &dyn Answering,
    ) -> Result<Value, McpError> {
        match self.owner.upgrade() {
            Some(server) => server.call(&self.name, arguments, answering).await,
            None => Err(McpError::Closed {
                server: self.server.clone(),
                cause: "was stopped".to_owned(),
            }),
        }
    }

    /// Returns whether its server is a local program, or is no longer known.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let remote = |server: Arc<Server>| match &server.config {
            Ok(config) => matches!(config.transport, Transport::Remote { .. }),
            Err(_) => false,
        };
        !self.owner.upgrade().is_some_and(remote)
    }

    /// Returns the timeout since the call or its last progress report, and the timeout of a restart before it.
    #[must_use]
    pub fn waits(&self) -> (Duration, Duration) {
        self.owner.upgrade().map_or((CALL, START), |server| {
            (server.call_wait(), server.start_wait())
        })
    }
}
