//! A plugin process: its start, its calls and its end.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outrigger_network_proxy::ProxyRedirect;
use outrigger_protocol::custom_points::ProviderStream;
use outrigger_protocol::login::{AuthFetch, AuthHead};
use outrigger_protocol::rpc::{
    Enter, EventBatch, Hello, Initialize, Initialized, PROTOCOL_VERSION, ToolRun, feature, host,
};
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::process_time::timeout;
use outrigger_sandbox::{Child, Exit, Limits, Policy, Spawner, Spec, Stdio};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::{Closed, JsError};
use crate::fetch::FetchBody;
use crate::hooks::{Carrier, Transfer};
use crate::host_handler::HostHandler;
use crate::output::{Lines, OutputLog};
use crate::payload::exchange::Exchange;
use crate::peer::Peer;
use crate::runtime::JsRuntime;
use crate::script;

/// Time to wait for the last frames of an exited process, and for the exit of one whose channel has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Start options of a plugin process.
pub struct StartOptions {
    /// Bun or Node.
    pub runtime: JsRuntime,
    /// Starts it.
    pub spawner: Spawner,
    /// Its sandbox, usually [`crate::default_policy`]; `None` for the setting `sandbox = "off"`.
    pub policy: Option<Policy>,
    /// Redirect for connections that bypass proxy settings.
    pub proxy_redirect: Option<ProxyRedirect>,
    /// Its whole environment: an allow-list, with HOME, the XDG folders and TMPDIR in a private folder.
    pub env: Vec<(OsString, OsString)>,
    /// Resource limits.
    pub limits: Limits,
    /// Folder of the host script, for all processes: none of them may write to it. It starts there, never in the project's
    /// folder, where Bun would run the preloads of a `bunfig.toml`.
    pub scripts: PathBuf,
    /// Name in logs and messages: the plugin's, if it is alone.
    pub name: String,
    /// Answers requests of its plugins.
    pub handler: Arc<dyn HostHandler>,
    /// How its output is logged.
    pub output: OutputLog,
    /// Deadline from the start to the hello.
    pub deadline: Duration,
    /// How large payloads of hooks are sent.
    pub transfer: Transfer,
}

/// A running plugin process. Dropping it kills the process with everything that it has started.
#[derive(Debug)]
pub struct JsProcess {
    pub(crate) peer: Arc<Peer>,
    name: String,
    pid: u32,
    hello: Hello,
    pub(crate) carrier: Carrier,
    // Setting it, or dropping it with the process, kills the process.
    kill: watch::Sender<bool>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").finish_non_exhaustive()
    }
}

impl JsProcess {
    /// Starts the host script and waits for its hello.
    ///
    /// # Errors
    /// [`JsError::Script`], [`JsError::Spawn`], [`JsError::HelloTimeout`], [`JsError::Closed`] when it ended before its
    /// hello, [`JsError::ProtocolMismatch`], [`JsError::RuntimeTooOld`].
    pub async fn start(options: StartOptions) -> Result<Self, JsError> {
        let ms = millis(options.deadline);
        let (runtime, spawner) = (options.runtime.clone(), options.spawner.clone());
        let lines = Lines::new(options.name.clone(), options.output);
        let opened = Self::open(&options, &lines);
        let started = timeout(options.deadline, opened).await;
        match started {
            Ok(Ok(process)) => Ok(process),
            // An old Node does not understand the script; its version is a better explanation than its syntax error.
            Ok(Err(error @ JsError::Closed { .. })) => Err(match runtime.version(&spawner).await {
                Err(old @ JsError::RuntimeTooOld { .. }) => old,
                _ => error,
            }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(JsError::HelloTimeout {
                name: options.name,
                ms,
                stderr: lines.last(),
            }),
        }
    }

    async fn open(options: &StartOptions, lines: &Arc<Lines>) -> Result<Self, JsError> {
        let exchange = options.transfer.exchange(&options.name);
        let child = Self::spawn(options, exchange.as_ref()).await?;
        let pid = child.pid();
        let handler = Arc::clone(&options.handler);
        let peer = Peer::new(Arc::clone(lines), handler, exchange.clone());
        let (kill, killed) = watch::channel(false);
        tokio::spawn(supervise(
            child,
            Arc::clone(&peer),
            Arc::clone(lines),
            killed,
        ));

        let hello = Self::greeting(&peer, &options.runtime).await?;
        let can = |feature: &str| hello.features.iter().any(|name| name == feature);
        let carrier = Carrier::new(
            &options.transfer,
            exchange.filter(|_| can(feature::FILE)),
            can(feature::MIRROR),
        );
        Ok(Self {
            peer,
            name: options.name.clone(),
            pid,
            hello,
            carrier,
            kill,
        })
    }

    /// Starts the runtime with the host script; it may write to the folder of the exchange.
    async fn spawn(options: &StartOptions, exchange: Option<&Exchange>) -> Result<Child, JsError> {
        let script = script::write(&options.scripts)?;
        let folder = script.parent().unwrap_or(&options.scripts);
        let mut spec = Spec::new(&options.runtime.path)
            .args(options.runtime.arguments(&script))
            .cwd(folder)
            .vars(options.env.iter().cloned())
            .stdout(Stdio::Pipe)
            .stderr(Stdio::Pipe)
            .channel()
            .limits(options.limits)
            .label(format!("plugin:{}", options.name));
        spec.policy = options.policy.clone().map(|mut policy| {
            policy.read.push(folder.to_owned());
            match exchange {
                Some(exchange) => policy.write(exchange.folder()),
                None => policy,
            }
        });
        spec.proxy_redirect = options.proxy_redirect.clone();
        let child = options.spawner.spawn(spec).await;
        child.map_err(|source| JsError::Spawn {
            name: options.name.clone(),
            source,
        })
    }

    /// Waits for the hello of the host script, and checks its versions.
    async fn greeting(peer: &Peer, runtime: &JsRuntime) -> Result<Hello, JsError> {
        let (mut hello, mut closed) = (peer.hello(), peer.closed());
        let hello = tokio::select! {
            hello = hello.wait_for(Option::is_some) => hello.ok().and_then(|hello| hello.clone()),
            _ = closed.wait_for(Option::is_some) => None,
        };
        let hello = hello.ok_or_else(|| peer.closed_error())?;
        if major(&hello.protocol) != major(PROTOCOL_VERSION) {
            return Err(JsError::ProtocolMismatch {
                theirs: hello.protocol,
            });
        }
        runtime.check_version(&hello.version)?;
        Ok(hello)
    }

    /// Returns its hello message.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns false once its channel has ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.peer.closed().borrow().is_none()
    }

    /// Waits for its end, however it comes.
    pub async fn closed(&self) -> Closed {
        let mut closed = self.peer.closed();
        let ended = closed.wait_for(Option::is_some).await;
        ended
            .ok()
            .and_then(|closed| closed.clone())
            .unwrap_or_default()
    }

    /// Returns the code that it entered last and has not left: the culprit if it is unresponsive.
    #[must_use]
    pub fn entered(&self) -> Option<Enter> {
        self.peer.entered().last()
    }

    /// Returns all code that it entered and has not left, oldest first.
    #[must_use]
    pub fn all_entered(&self) -> Vec<Enter> {
        self.peer.entered().all()
    }

    /// Returns the code of [`JsProcess::all_entered`] that may hold the thread now: code that has yielded once is skipped,
    /// since a later spin or exit may be caused by other code. With none or more than one, the culprit is unknown.
    #[must_use]
    pub fn suspects(&self) -> Vec<Enter> {
        self.peer.entered().suspects()
    }

    /// Loads plugins. One that cannot be loaded is not an error: its problems are in the answer.
    ///
    /// # Errors
    /// [`JsError::CallTimeout`], [`JsError::Closed`], [`JsError::Plugin`] when the folder cannot be entered.
    pub async fn initialize(
        &self,
        initialize: &Initialize,
        deadline: Duration,
    ) -> Result<Initialized, JsError> {
        self.peer.expect_output(&initialize.plugins);
        let file_over = self.carrier.file_over();
        let initialize = Initialize {
            file_over,
            ..initialize.clone()
        };
        let mut call = self.peer.call(host::INITIALIZE, &initialize)?;
        self.within(host::INITIALIZE, deadline, call.typed()).await
    }

    /// Runs a tool. When `cancel` comes first, the tool's `abort` signal fires and the answer is not waited for.
    ///
    /// # Errors
    /// [`JsError::Plugin`] with the tool's own text, [`JsError::Cancelled`], [`JsError::CallTimeout`],
    /// [`JsError::Closed`].
    pub async fn tool_run(
        &self,
        run: &ToolRun,
        deadline: Duration,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<ToolOutput, JsError> {
        self.tool_run_as(run, deadline, cancel, |_| {}).await
    }

    /// As [`JsProcess::tool_run`]; `on_call` is called with the number that [`outrigger_protocol::rpc::ToolAsk`] and
    /// [`outrigger_protocol::rpc::ToolMetadata`] of this call will carry, before the process can send any.
    ///
    /// # Errors
    /// As [`JsProcess::tool_run`].
    pub async fn tool_run_as(
        &self,
        run: &ToolRun,
        deadline: Duration,
        cancel: impl Future<Output = ()> + Send,
        on_call: impl FnOnce(u64) + Send,
    ) -> Result<ToolOutput, JsError> {
        let mut call = self.peer.call_as(host::TOOL_RUN, run, on_call)?;
        tokio::select! {
            biased;
            answer = self.within(host::TOOL_RUN, deadline, call.typed()) => answer,
            () = cancel => Err(JsError::Cancelled { method: host::TOOL_RUN }),
        }
    }

    /// Any request of [`outrigger_protocol::login`] but `auth.fetch`.
    ///
    /// # Errors
    /// [`JsError::Plugin`] with the plugin's own text, [`JsError::CallTimeout`], [`JsError::BadAnswer`],
    /// [`JsError::Closed`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
        deadline: Duration,
    ) -> Result<T, JsError> {
        let mut call = self.peer.call(method, params)?;
        self.within(method, deadline, call.typed()).await
    }

    /// Sends a request through a plugin's `fetch`. There is no deadline here: the caller has one, and dropping what this
    /// answers cancels the request.
    ///
    /// # Errors
    /// As [`JsProcess::ask`].
    pub async fn fetch(&self, fetch: &AuthFetch) -> Result<(AuthHead, FetchBody), JsError> {
        self.streamed(host::AUTH_FETCH, fetch).await
    }

    /// Asks a plugin's provider for an answer, whose pieces are the body. There is no deadline here, and dropping what
    /// this answers cancels the request.
    ///
    /// # Errors
    /// As [`JsProcess::ask`].
    pub async fn provider_stream(
        &self,
        ask: &ProviderStream,
    ) -> Result<(AuthHead, FetchBody), JsError> {
        self.streamed(host::PROVIDER_STREAM, ask).await
    }

    async fn streamed(
        &self,
        method: &'static str,
        params: &(impl Serialize + Sync),
    ) -> Result<(AuthHead, FetchBody), JsError> {
        let mut chunks = None;
        let peer = Arc::clone(&self.peer);
        let mut call = self.peer.call_as(method, params, |call| {
            chunks = Some((call, peer.stream(call)));
        })?;
        let Some((number, chunks)) = chunks else {
            return Err(self.peer.closed_error());
        };
        // Created before the answer, so that dropping the call in between forgets the stream too.
        let body = FetchBody::new(Arc::clone(&self.peer), number, chunks);
        let head = call.typed().await?;
        Ok((head, body.begin()))
    }

    /// Returns whether it has a call to answer.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.peer.is_working()
    }

    /// Returns whether the process takes requests: false if some code in it does not yield the thread.
    pub async fn responds(&self, within: Duration) -> bool {
        let Ok(mut call) = self.peer.call(host::PING, &json!({})) else {
            return false;
        };
        let answer = timeout(within, call.answer()).await;
        answer.is_ok_and(|answer| answer.is_ok())
    }

    /// Hands events over. Nothing answers; they are seen before any later request.
    ///
    /// # Errors
    /// [`JsError::Closed`]; [`JsError::Backlog`] when the process does not read, and the events are lost.
    pub fn event_batch(&self, batch: &EventBatch) -> Result<(), JsError> {
        self.peer.events(batch)
    }

    /// Returns for how long it has had unprocessed events.
    #[must_use]
    pub fn unseen_for(&self) -> Option<Duration> {
        self.peer.unseen_for()
    }

    /// Returns how many events it has not processed yet; for an exited process, how many it never did.
    #[must_use]
    pub fn unseen_events(&self) -> usize {
        self.peer.unseen()
    }

    /// Lets the plugins dispose of what they hold, then ends the process, by force when it does not end by itself.
    ///
    /// # Errors
    /// [`JsError::CallTimeout`] when a plugin did not finish in time; [`JsError::Closed`] when it was gone before. In
    /// either case it has been killed.
    pub async fn shutdown(&self, deadline: Duration) -> Result<(), JsError> {
        let mut call = self.peer.call(host::SHUTDOWN, &json!({}))?;
        if let Err(error) = self.within(host::SHUTDOWN, deadline, call.answer()).await {
            self.kill();
            return Err(error);
        }
        if timeout(GRACE, self.closed()).await.is_err() {
            self.kill();
        }
        Ok(())
    }

    /// Kills the process and everything that it has started; every open call ends with [`JsError::Closed`].
    pub fn kill(&self) {
        self.kill.send_replace(true);
    }

    pub(crate) async fn within<T>(
        &self,
        method: &'static str,
        deadline: Duration,
        answer: impl Future<Output = Result<T, JsError>>,
    ) -> Result<T, JsError> {
        let answered = timeout(deadline, answer).await;
        answered.unwrap_or_else(|_| {
            Err(JsError::CallTimeout {
                method,
                ms: millis(deadline),
                handler: None,
                entered: self.entered(),
            })
        })
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

/// Owns the child: reads and writes its channel, and when either ends, waits for the other.
async fn supervise(
    mut child: Child,
    peer: Arc<Peer>,
    lines: Arc<Lines>,
    mut killed: watch::Receiver<bool>,
) {
    let stdout = child
        .stdout
        .take()
        .map(|stream| tokio::spawn(Arc::clone(&lines).pump(stream, false)));
    let stderr = child
        .stderr
        .take()
        .map(|stream| tokio::spawn(Arc::clone(&lines).pump(stream, true)));
    let Some(channel) = child.channel.take() else {
        return peer.close(Closed::default());
    };
    let (source, sink) = channel.into_split();
    let writer = tokio::spawn(Arc::clone(&peer).write(sink));
    let mut reader = tokio::spawn(Arc::clone(&peer).read(source));

    let mut exit = None;
    let reason;
    tokio::select! {
        ended = &mut reader => {
            reason = ended.ok().flatten();
            if reason.is_none() {
                exit = timeout(GRACE, child.wait()).await.ok().and_then(Result::ok);
            }
        }
        ended = child.wait() => {
            exit = ended.ok();
            // What it had sent before it ended is still handled. A process that it left behind may keep the channel open.
            reason = timeout(GRACE, &mut reader).await.ok().and_then(Result::ok).flatten();
        }
        () = async { drop(killed.wait_for(|killed| *killed).await) } => reason = Some("it was ended by the host".to_owned()),
    }
    writer.abort();
    reader.abort();
    // Also kills its descendants; reading /proc for that must not block the runtime.
    let killer = child.killer();
    let _ = tokio::task::spawn_blocking(move || killer.kill_tree()).await;
    for pump in [stdout, stderr].into_iter().flatten() {
        finish(pump).await;
    }
    let status = exit.map(|exit: Exit| exit.to_string());
    peer.close(Closed {
        status,
        stderr: lines.last(),
        reason,
    });
}

async fn finish(mut pump: JoinHandle<()>) {
    if timeout(GRACE, &mut pump).await.is_err() {
        pump.abort();
    }
}
