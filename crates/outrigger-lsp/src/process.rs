//! A server's process and its messages.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time::{self, timeout};
use outrigger_sandbox::{Child, Killer, Spawner, Spec};
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::LspError;
use crate::frames::{Frames, frame};

/// Maximum number of queued messages for a server that does not read.
const QUEUE: usize = 256;
/// Maximum number of messages per second; beyond that the pipe fills and the server waits.
const MAX_PER_SECOND: u32 = 2_000;
/// Bytes kept of its standard error, for the cause of its end.
const MAX_STDERR_BYTES: usize = 2_000;
/// Maximum time between the end of its output and the end of the process.
const ENDING: Duration = Duration::from_millis(500);

/// Handles a server's own messages.
pub(crate) trait Handler: Send + Sync {
    /// Handles a notification.
    fn notice(&self, method: &str, params: Value);
    /// Handles a request; returns its result.
    fn request(&self, method: &str, params: &Value) -> Value;
}

type RpcResult = Result<Value, String>;

#[derive(Default)]
struct Pending {
    waiting: HashMap<i64, oneshot::Sender<RpcResult>>,
    /// Why there will be no more messages.
    closed: Option<String>,
}

struct Shared {
    name: String,
    pending: Mutex<Pending>,
    next: AtomicI64,
    said: Mutex<Vec<u8>>,
}

/// A running server. It is killed, with all that it has started, on drop.
pub(crate) struct Process {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Vec<u8>>,
    stop: watch::Sender<Option<Duration>>,
    over: watch::Receiver<bool>,
    pid: u32,
    killer: Killer,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The owner ends it at once: it could still write until its supervisor has noticed.
        self.killer.kill_tree();
    }
}

impl Process {
    /// Starts it; sends nothing yet.
    ///
    /// # Errors
    /// [`LspError::Start`].
    pub(crate) async fn start(
        name: &str,
        program: &Path,
        spec: Spec,
        spawner: &Spawner,
        handler: Arc<dyn Handler>,
    ) -> Result<Self, LspError> {
        let failed = |reason: String| LspError::Start {
            server: name.to_owned(),
            reason,
        };
        let spec = spec.piped().label(format!("lsp:{name}"));
        let mut child = spawner
            .spawn(spec)
            .await
            .map_err(|error| failed(format!("{}: {error}", program.display())))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("it has no standard streams".to_owned()));
        };
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            pending: Mutex::default(),
            next: AtomicI64::new(1),
            said: Mutex::default(),
        });
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (stop, stopping) = watch::channel(None);
        let (ended, over) = watch::channel(false);
        let (pid, killer) = (child.own_pid(), child.killer());
        let tasks = Tasks {
            write: tokio::spawn(write(stdin, queue)),
            read: tokio::spawn(read(
                stdout,
                Arc::clone(&shared),
                outgoing.downgrade(),
                handler,
            )),
            listen: tokio::spawn(listen(stderr, Arc::clone(&shared))),
        };
        tokio::spawn(supervise(
            child,
            tasks,
            stopping,
            Arc::clone(&shared),
            ended,
        ));
        Ok(Self {
            shared,
            outgoing,
            stop,
            over,
            pid,
            killer,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns why it has ended, if it has.
    pub(crate) fn gone(&self) -> Option<LspError> {
        let cause = lock(&self.shared.pending).closed.clone()?;
        Some(LspError::Gone {
            server: self.shared.name.clone(),
            cause,
        })
    }

    /// Sends a notification; returns `false` if the server reads so slowly that it was dropped.
    pub(crate) fn notify(&self, method: &str, params: &Value) -> bool {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn send(&self, message: &Value) -> bool {
        self.outgoing.try_send(frame(&message.to_string())).is_ok()
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// [`LspError::Timeout`], [`LspError::Refused`], [`LspError::Gone`].
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        wait: Duration,
    ) -> Result<Value, LspError> {
        let server = || self.shared.name.clone();
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.shared.pending);
            if let Some(cause) = pending.closed.clone() {
                return Err(LspError::Gone {
                    server: server(),
                    cause,
                });
            }
            pending.waiting.insert(id, sender);
        }
        let _waiting = PendingRequest {
            shared: &self.shared,
            id,
        };
        let late = || LspError::Timeout {
            server: server(),
            method: method.to_owned(),
            after: wait,
        };
        if !self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})) {
            return Err(late());
        }
        match timeout(wait, answer).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(message))) => Err(LspError::Refused {
                server: server(),
                method: method.to_owned(),
                message,
            }),
            Ok(Err(_)) => Err(self.gone().unwrap_or_else(late)),
            Err(_) => {
                self.notify("$/cancelRequest", &json!({"id": id}));
                Err(late())
            }
        }
    }

    /// Asks it to end, waits up to `grace`, then kills it with all that it has started.
    pub(crate) async fn close(&self, grace: Duration) {
        let asked = self.request("shutdown", &Value::Null, grace).await;
        if asked.is_ok() {
            self.notify("exit", &Value::Null);
        }
        self.stop
            .send_replace(Some(if asked.is_ok() { grace } else { Duration::ZERO }));
        let mut over = self.over.clone();
        // Also ends if the supervisor is gone.
        let _ = over.wait_for(|over| *over).await;
    }
}

struct PendingRequest<'a> {
    shared: &'a Shared,
    id: i64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        lock(&self.shared.pending).waiting.remove(&self.id);
    }
}

struct Tasks {
    write: tokio::task::JoinHandle<()>,
    read: tokio::task::JoinHandle<Option<String>>,
    listen: tokio::task::JoinHandle<()>,
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.write.abort();
        self.read.abort();
        self.listen.abort();
    }
}

/// Owns the process until its end.
async fn supervise(
    mut child: Child,
    mut tasks: Tasks,
    mut stopping: watch::Receiver<Option<Duration>>,
    shared: Arc<Shared>,
    ended: watch::Sender<bool>,
) {
    let cause = tokio::select! {
        exit = child.wait() => {
            let _ = timeout(ENDING, &mut tasks.listen).await;
            exit.map_or_else(|error| error.to_string(), |exit| format!("it ended ({exit})"))
        }
        fault = &mut tasks.read => match fault.ok().flatten() {
            Some(fault) => fault,
            None => match timeout(ENDING, child.wait()).await {
                Ok(Ok(exit)) => format!("it ended ({exit})"),
                _ => "it closed its output".to_owned(),
            },
        },
        grace = stop(&mut stopping) => {
            let _ = timeout(grace, child.wait()).await;
            "it was stopped".to_owned()
        }
    };
    child.kill_tree();
    let said = String::from_utf8_lossy(&lock(&shared.said))
        .trim()
        .to_owned();
    let said = said.lines().last().unwrap_or_default().to_owned();
    let cause = if said.is_empty() {
        cause
    } else {
        format!("{cause}; its last words: {said}")
    };
    {
        let mut pending = lock(&shared.pending);
        pending.closed = Some(cause);
        pending.waiting.clear();
    }
    drop(child);
    drop(tasks);
    ended.send_replace(true);
}

async fn stop(stopping: &mut watch::Receiver<Option<Duration>>) -> Duration {
    // An error means that the handle was dropped.
    let asked = stopping.wait_for(Option::is_some).await;
    asked.ok().and_then(|grace| *grace).unwrap_or_default()
}

async fn write(mut stdin: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(message) = queue.recv().await {
        if stdin.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// Reads messages until the end of its output; returns why reading stopped.
async fn read(
    stdout: pipe::Receiver,
    shared: Arc<Shared>,
    outgoing: mpsc::WeakSender<Vec<u8>>,
    handler: Arc<dyn Handler>,
) -> Option<String> {
    let mut frames = Frames::new(stdout);
    let mut second = process_time::Instant::now();
    let mut count = 0;
    loop {
        let body = match frames.next().await {
            Ok(Some(body)) => body,
            Ok(None) => return None,
            Err(error) => return Some(format!("it wrote what is not a message: {error}")),
        };
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            return Some("it wrote a message that is not JSON".to_owned());
        };
        take(message, &shared, &outgoing, handler.as_ref());
        count += 1;
        if count >= MAX_PER_SECOND {
            process_time::sleep_until(second + Duration::from_secs(1)).await;
            count = 0;
        }
        if second.elapsed() >= Duration::from_secs(1) {
            second = process_time::Instant::now();
            count = 0;
        }
    }
}

fn take(
    mut message: Value,
    shared: &Shared,
    outgoing: &mpsc::WeakSender<Vec<u8>>,
    handler: &dyn Handler,
) {
    let id = message.get("id").cloned().filter(|id| !id.is_null());
    let method = message
        .get("method")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let params = message
        .get_mut("params")
        .map(Value::take)
        .unwrap_or_default();
    match (id, method) {
        (Some(id), Some(method)) => {
            let result = handler.request(&method, &params);
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            // A server that sends requests but does not read gets no responses.
            if let Some(queue) = outgoing.upgrade() {
                let _ = queue.try_send(frame(&answer));
            }
        }
        (None, Some(method)) => handler.notice(&method, params),
        (Some(id), None) => {
            let waiting = id
                .as_i64()
                .and_then(|id| lock(&shared.pending).waiting.remove(&id));
            let Some(waiting) = waiting else { return };
            let answer = match message.get("error").filter(|error| !error.is_null()) {
                Some(error) => Err(error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or("an error without a message")
                    .chars()
                    .take(300)
                    .collect()),
                None => Ok(message
                    .get_mut("result")
                    .map(Value::take)
                    .unwrap_or_default()),
            };
            let _ = waiting.send(answer);
        }
        (None, None) => {}
    }
}

/// Reads its standard error, so that it does not block, and keeps the end of it.
async fn listen(mut stderr: pipe::Receiver, shared: Arc<Shared>) {
    let mut chunk = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut said = lock(&shared.said);
        said.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let over = said.len().saturating_sub(MAX_STDERR_BYTES);
        said.drain(..over);
    }
}
