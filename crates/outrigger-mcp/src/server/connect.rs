//! The connection to a server: established within its timeout, re-established when lost, with its tools re-read when
//! they change.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, timeout};
use outrigger_stdx::sync::lock;
use tokio::sync::Notify;

use super::Server;
use crate::config::Transport;
use crate::error::McpError;
use crate::launch::{Launch, LaunchRequest};
use crate::link::{About, Link};
use crate::secret::Secrets;
use crate::transport::http::Http;
use crate::transport::remote::Remote;
use crate::transport::sse::SseLink;
use crate::transport::stdio::{Program, Stdio};

/// How long calls fail at once after a failed restart, instead of retrying it.
const PAUSE: Duration = Duration::from_secs(30);
/// Minimum interval between readings of a list of tools that keeps changing.
const RELIST: Duration = Duration::from_secs(1);

impl Server {
    /// Returns the connection, re-established if it was lost.
    pub(crate) async fn live(self: &Arc<Self>) -> Result<Arc<Link>, McpError> {
        let open = || {
            self.inside()
                .link
                .clone()
                .filter(|link| link.closed().is_none())
        };
        if let Some(link) = open() {
            return Ok(link);
        }
        let _gate = self.gate.lock().await;
        if let Some(link) = open() {
            return Ok(link);
        }
        let before = self.inside().error.clone();
        if let Some((error, _)) = before.filter(|(_, at)| at.elapsed() < PAUSE) {
            return Err(error);
        }
        if self.inside().stopped || !self.is_on() {
            return Err(McpError::Closed {
                server: self.name.clone(),
                cause: "was stopped".to_owned(),
            });
        }
        let link = self.connect().await.inspect_err(|error| self.log(error))?;
        tracing::info!("[mcp:{}] was started again", self.name);
        self.changed();
        Ok(link)
    }

    /// Starts it, performs the first exchange and lists its tools, all within its timeout.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<Arc<Link>, McpError> {
        let (begun, wait) = (Instant::now(), self.start_wait());
        self.inside().starts += 1;
        // Where to find its output after a timeout.
        let opened: Mutex<Option<Arc<Link>>> = Mutex::default();
        let work = async {
            let link = Arc::new(self.open().await?);
            *lock(&opened) = Some(Arc::clone(&link));
            let (link, about) = match link.initialize(&self.name, wait).await {
                Err(error) if matches!(*link, Link::Http(_)) => self.older(error, wait).await?,
                about => (link, about?),
            };
            let tools = if about.tools {
                link.tools(&self.name, wait).await?
            } else {
                Vec::new()
            };
            Ok((link, about, tools))
        };
        let result = match timeout(wait, work).await {
            Ok(Err(McpError::Timeout { .. })) | Err(_) => {
                let link = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
                let heard = link.map(|link| link.heard()).unwrap_or_default();
                Err(McpError::StartTimeout {
                    server: self.name.clone(),
                    ms: wait.as_millis(),
                    heard,
                })
            }
            Ok(other) => other,
        };
        let (link, about, tools) = result.inspect_err(|error| self.failed(error.clone()))?;
        let mut inside = self.inside();
        if inside.stopped || inside.switched == Some(false) {
            return Err(McpError::Closed {
                server: self.name.clone(),
                cause: "was stopped".to_owned(),
            });
        }
        inside.start_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        inside.error = None;
        inside.about = about;
        inside.tools = tools;
        inside.link = Some(Arc::clone(&link));
        drop(inside);
        tokio::spawn(follow(
            Arc::downgrade(self),
            Arc::downgrade(&link),
            link.news(),
        ));
        Ok(link)
    }

    /// Tries the older transport for a remote server that does not support streamable HTTP. If that fails too, the first
    /// error is more helpful.
    async fn older(&self, error: McpError, wait: Duration) -> Result<(Arc<Link>, About), McpError> {
        if !matches!(error, McpError::Http { .. } | McpError::Answer { .. }) {
            return Err(error);
        }
        let older = async {
            let sse = SseLink::open(self.remote()?, self.around.roots(), wait).await?;
            let link = Arc::new(Link::Sse(Box::new(sse)));
            let about = link.initialize(&self.name, wait).await?;
            Ok((link, about))
        };
        match older.await {
            Err(
                refusal @ (McpError::NeedsAuth { .. }
                | McpError::NeedsScope { .. }
                | McpError::NeedsClientRegistration { .. }),
            ) => Err(refusal),
            other => other.map_err(|_: McpError| error),
        }
    }

    /// Returns URL, headers and token of a remote server.
    pub(crate) fn remote(&self) -> Result<Remote, McpError> {
        match &self.config.as_ref().map_err(Clone::clone)?.transport {
            Transport::Remote { url, headers, .. } => {
                Remote::new(&self.name, url, headers, self.bearer.clone(), &self.way)
            }
            Transport::Local { .. } => Err(McpError::NoOAuth {
                server: self.name.clone(),
            }),
        }
    }

    async fn open(&self) -> Result<Link, McpError> {
        match &self.config.as_ref().map_err(Clone::clone)?.transport {
            Transport::Local { environment, .. } => {
                let launch = self.launch().await?;
                let program = Program {
                    command: launch.command,
                    cwd: launch.cwd,
                    env: launch.env,
                    secrets: Secrets::new(environment),
                };
                let link = Stdio::start(&self.name, &program, &launch.spawner, self.around.roots())
                    .await?;
                self.inside().held = launch.held;
                Ok(Link::Stdio(link))
            }
            Transport::Remote { .. } => Ok(Link::Http(Box::new(Http::new(
                self.remote()?,
                self.around.roots(),
            )))),
        }
    }

    /// Returns the start that its entry requests; `None` for a remote server.
    pub(super) fn launch_request(&self) -> Option<LaunchRequest> {
        let Ok(Transport::Local {
            command,
            cwd,
            environment,
        }) = self.config.as_ref().map(|it| &it.transport)
        else {
            return None;
        };
        // A disabled entry without a type has no command.
        if command.is_empty() {
            return None;
        }
        let mut env = self.around.env.clone();
        let own = environment.iter();
        env.extend(own.map(|(name, value)| (name.into(), value.into())));
        Some(LaunchRequest {
            server: self.name.clone(),
            entry: self.entry.clone(),
            command: command.clone(),
            cwd: cwd.clone(),
            env,
        })
    }

    async fn launch(&self) -> Result<Launch, McpError> {
        let refused = |reason: &str, hint: &str| McpError::NotStarted {
            server: self.name.clone(),
            reason: reason.to_owned(),
            hint: hint.to_owned(),
        };
        let stopped = || refused("the program is ending", "");
        let request = self.launch_request().ok_or_else(stopped)?;
        let Some(launcher) = self.around.launcher.clone() else {
            let directory = &self.around.directory;
            let cwd = request.cwd.map(|cwd| directory.join(cwd));
            return Ok(Launch {
                spawner: self.around.spawner.clone(),
                command: request.command,
                cwd: cwd.unwrap_or_else(|| directory.clone()),
                env: request.env,
                held: None,
            });
        };
        let decided = tokio::task::spawn_blocking(move || launcher.launch(&request)).await;
        decided
            .map_err(|_| stopped())?
            .map_err(|refusal| refused(&refusal.reason, &refusal.hint))
    }

    async fn relist(&self, link: &Link) {
        match link.tools(&self.name, self.start_wait()).await {
            Ok(tools) => {
                let mut inside = self.inside();
                if inside.stopped {
                    return;
                }
                inside.tools = tools;
                drop(inside);
                self.changed();
            }
            Err(error) => {
                tracing::warn!("[mcp:{}] its tools have changed, but: {error}", self.name)
            }
        }
    }
}

/// Re-reads the list of tools whenever the server reports a change. Keeps neither the server nor the connection alive.
async fn follow(server: Weak<Server>, link: Weak<Link>, news: Arc<Notify>) {
    loop {
        news.notified().await;
        let (Some(server), Some(link)) = (server.upgrade(), link.upgrade()) else {
            return;
        };
        if link.closed().is_some() {
            return;
        }
        server.relist(&link).await;
        drop((server, link));
        tokio::time::sleep(RELIST).await;
    }
}
