//! A server that is a child process: messages are lines of its standard input and output.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, sleep_until, timeout};
use outrigger_sandbox::{Child, Exit, SandboxError, Spawner, Spec};
use outrigger_stdx::sync::lock;
use serde_json::Value;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::error::McpError;
use crate::secret::Secrets;
use crate::transport::incoming::{self, RootList};
use crate::transport::pending::{CancelOnDrop, Outgoing, Pending};
use crate::transport::quota::Quota;
use crate::wire::{self, Incoming, MAX_BYTES};
use outrigger_jsonrpc::Lines;

/// Maximum queued messages for a server that does not read.
const QUEUE: usize = 64;
/// Maximum time between the end of its output and the end of the process, in either order.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum bytes of output between two messages that are not messages, before the server is ended.
const MAX_JUNK: usize = 16 * 1024 * 1024;
/// Maximum unsolicited messages per second; beyond that the pipe fills and the server waits.
const MAX_NOTICES: u64 = 5_000;
const STDERR_LINE: usize = 4 * 1024;
const STDERR_LINES_A_SECOND: u64 = 50;
const STDERR_BYTES_A_SECOND: u64 = 4 * 1024 * 1024;
/// Number of lines kept to explain its end.
const KEPT: usize = 5;
/// Maximum length of a line in an error.
const MAX_QUOTED: usize = 300;

/// The program to start.
pub(crate) struct Program {
    pub(crate) command: Vec<String>,
    pub(crate) cwd: PathBuf,
    /// The complete environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Removed from its output.
    pub(crate) secrets: Secrets,
}

/// A running server. It is killed, with all that it has started, on drop.
pub(crate) struct Stdio {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<String>,
    // How long it may take to end on its own once its input is closed; if the sender is dropped, no time at all.
    ending: watch::Sender<Option<Duration>>,
    ended: watch::Receiver<bool>,
    pid: u32,
}

struct Shared {
    server: String,
    secrets: Secrets,
    pending: Pending,
    stderr: Mutex<VecDeque<String>>,
    junk: Mutex<Option<(u64, String)>>,
}

impl Stdio {
    /// Starts the process; sends nothing yet.
    ///
    /// # Errors
    /// [`McpError::Start`].
    pub(crate) async fn start(
        server: &str,
        program: &Program,
        spawner: &Spawner,
        roots: RootList,
    ) -> Result<Self, McpError> {
        let failed = |reason: String| McpError::Start {
            server: server.to_owned(),
            reason,
        };
        let name = program.command.first().map_or("", String::as_str);
        let spec = Spec::new(Path::new(name))
            .args(program.command.iter().skip(1))
            .cwd(&program.cwd)
            .vars(program.env.iter().cloned())
            .piped()
            .label(format!("mcp:{server}"));
        let mut child = spawner
            .spawn(spec)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed("it has no standard streams".to_owned()));
        };
        let shared = Arc::new(Shared {
            server: server.to_owned(),
            secrets: program.secrets.clone(),
            pending: Pending::new(roots),
            stderr: Mutex::default(),
            junk: Mutex::default(),
        });
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (ending, asked) = watch::channel(None);
        let (over, ended) = watch::channel(false);
        let pid = child.pid();
        let pumps = Pumps {
            input: tokio::spawn(write(stdin, queue)),
            output: tokio::spawn(read(stdout, Arc::clone(&shared), outgoing.downgrade())),
            errors: tokio::spawn(listen(stderr, Arc::clone(&shared))),
        };
        tokio::spawn(supervise(child, pumps, asked, Arc::clone(&shared), over));
        Ok(Self {
            shared,
            outgoing,
            ending,
            ended,
            pid,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.shared.pending
    }

    /// Returns its output that was not a message, for an error.
    pub(crate) fn heard(&self) -> String {
        self.shared.heard()
    }

    /// Sends a request and waits for its response, for at most `wait` since it was sent or last reported progress. If
    /// the future is dropped before, the server gets a cancellation.
    pub(crate) async fn request(&self, call: Outgoing<'_>) -> Result<Value, McpError> {
        let Outgoing { method, wait, .. } = call;
        let mut ticket = self.shared.pending.begin(call.asks)?;
        let asked = call.asked(&self.shared.server);
        let _cancel = CancelOnDrop {
            pending: &self.shared.pending,
            id: ticket.id,
            send: (method != "initialize").then_some(|message| self.send_now(message)),
        };
        let deadline = Instant::now() + wait;
        let params = ticket.marked(method, call.params);
        tokio::select! {
            sent = self.outgoing.send(wire::request(ticket.id, method, &params)) => {
                // The queue closes before the cause is known; the response contains it.
                let _ = sent;
            }
            () = sleep_until(deadline) => return Err(asked.late()),
        }
        ticket.answered(asked, deadline).await
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) {
        let _ = self.outgoing.send(wire::notice(method, None)).await;
    }

    fn send_now(&self, message: String) {
        if self.outgoing.try_send(message).is_err() {
            tracing::debug!(
                "[mcp:{}] does not read that a call was given up",
                self.shared.server
            );
        }
    }

    /// Closes its input, waits up to `grace` for its end, then kills it with all that it has started.
    pub(crate) async fn close(&self, grace: Duration) {
        self.ending.send_replace(Some(grace));
        let mut ended = self.ended.clone();
        // Also ends if the supervisor is gone.
        let _ = ended.wait_for(|over| *over).await;
    }
}

impl Shared {
    fn heard(&self) -> String {
        let mut said = Vec::new();
        if let Some((count, first)) = &*lock(&self.junk) {
            said.push(format!(
                "it printed {count} lines that are not MCP messages, first: {first}"
            ));
        }
        let stderr = lock(&self.stderr);
        if !stderr.is_empty() {
            said.push(format!(
                "its last words: {}",
                Vec::from_iter(stderr.iter().cloned()).join(" | ")
            ));
        }
        if said.is_empty() {
            String::new()
        } else {
            format!("; {}", said.join("; "))
        }
    }

    fn junk(&self, bytes: &[u8]) {
        let text = quote(bytes, &self.secrets);
        tracing::debug!("[mcp:{}] no MCP message: {text}", self.server);
        let mut junk = lock(&self.junk);
        junk.get_or_insert((0, text)).0 += 1;
    }
}

/// Returns the start of a line, for an error.
fn quote(bytes: &[u8], secrets: &Secrets) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(STDERR_LINE)]);
    // Redacted before it is truncated, which might leave half a secret.
    let text = secrets.hide(text.into_owned());
    text.trim()
        .chars()
        .take(MAX_QUOTED)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

struct Pumps {
    input: JoinHandle<()>,
    output: JoinHandle<Option<String>>,
    errors: JoinHandle<()>,
}

impl Drop for Pumps {
    fn drop(&mut self) {
        self.input.abort();
        self.output.abort();
        self.errors.abort();
    }
}

/// Owns the process until its end.
async fn supervise(
    mut child: Child,
    mut pumps: Pumps,
    mut asked: watch::Receiver<Option<Duration>>,
    shared: Arc<Shared>,
    over: watch::Sender<bool>,
) {
    let cause = tokio::select! {
        exit = child.wait() => last_words(&mut pumps, exit_text(exit)).await,
        end = &mut pumps.output => match end.ok().flatten() {
            Some(fault) => ended_for(&fault),
            None => match timeout(EXIT_TIMEOUT, child.wait()).await {
                Ok(exit) => {
                    // Its standard error may be read after the end of its output.
                    let _ = timeout(EXIT_TIMEOUT, &mut pumps.errors).await;
                    exit_text(exit)
                }
                Err(_) => "closed its output and was ended".to_owned(),
            },
        },
        _ = &mut pumps.input => match timeout(EXIT_TIMEOUT, child.wait()).await {
            Ok(exit) => last_words(&mut pumps, exit_text(exit)).await,
            Err(_) => "closed its input and was ended".to_owned(),
        },
        grace = ended(&mut asked) => {
            pumps.input.abort();
            let _ = timeout(grace, child.wait()).await;
            "was stopped".to_owned()
        }
    };
    child.kill_tree();
    let cause = format!("{cause}{}", shared.heard());
    shared.pending.close(&McpError::Closed {
        server: shared.server.clone(),
        cause,
    });
    drop(child);
    drop(pumps);
    over.send_replace(true);
}

/// Reads its last output. A grandchild may hold the pipes open, so not without a limit.
async fn last_words(pumps: &mut Pumps, exit: String) -> String {
    let output = timeout(EXIT_TIMEOUT, &mut pumps.output).await;
    let _ = timeout(EXIT_TIMEOUT, &mut pumps.errors).await;
    // It may have ended because we stopped reading.
    match output.ok().and_then(Result::ok).flatten() {
        Some(fault) => ended_for(&fault),
        None => exit,
    }
}

fn ended_for(fault: &str) -> String {
    format!("was ended: {fault}")
}

fn exit_text(exit: Result<Exit, SandboxError>) -> String {
    match exit {
        Ok(exit) => format!("ended ({exit})"),
        Err(error) => format!("was ended: {error}"),
    }
}

async fn ended(asked: &mut watch::Receiver<Option<Duration>>) -> Duration {
    // An error means that the handle was dropped.
    asked
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|grace| *grace)
        .unwrap_or_default()
}

/// Writes queued messages until the pipe is closed: a message that the server left in the pipe counts as written.
async fn write(mut stdin: pipe::Sender, mut queue: mpsc::Receiver<String>) {
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            _ = stdin.ready(Interest::ERROR) => return,
        };
        let Some(mut message) = message else { break };
        message.push('\n');
        if stdin.write_all(message.as_bytes()).await.is_err() {
            return;
        }
    }
    // All handles are gone, and with them the order to end.
    std::future::pending::<()>().await;
}

/// Reads messages until the end of its output; returns why reading stopped.
async fn read(
    stdout: pipe::Receiver,
    shared: Arc<Shared>,
    outgoing: mpsc::WeakSender<String>,
) -> Option<String> {
    let mut lines = Lines::new(stdout, MAX_BYTES);
    let mut unasked = Quota::new(MAX_NOTICES);
    let mut junk = 0;
    while let Ok(Some(line)) = lines.next().await {
        if !line.whole {
            return Some(format!(
                "it printed a line of more than {} MiB",
                MAX_BYTES >> 20
            ));
        }
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            unasked.hold(1).await;
            continue;
        }
        let Some(messages) = wire::read(&line.bytes) else {
            junk += line.bytes.len();
            shared.junk(&line.bytes);
            if junk > MAX_JUNK {
                return Some(format!(
                    "it printed more than {} MiB that are not messages",
                    MAX_JUNK >> 20
                ));
            }
            unasked.hold(1).await;
            continue;
        };
        junk = 0;
        for message in messages {
            if !take(message, &shared, &outgoing) {
                unasked.hold(1).await;
            }
        }
    }
    None
}

/// Returns `false` for an unsolicited message.
fn take(message: Incoming, shared: &Shared, outgoing: &mpsc::WeakSender<String>) -> bool {
    // A server that sends requests but does not read gets no replies.
    let send = |queue: &mpsc::WeakSender<String>, message: String| {
        let _ = queue.upgrade().map(|queue| queue.try_send(message));
    };
    match message {
        Incoming::Answer { id, result } => shared.pending.answer(id, result),
        Incoming::Request { id, method, params } => {
            match incoming::at_once(&shared.pending, &id, &method) {
                Some(answer) => send(outgoing, answer),
                None => {
                    let answer = incoming::later(&shared.pending, None, id, &method, params);
                    let queue = outgoing.clone();
                    tokio::spawn(async move { send(&queue, answer.await) });
                }
            }
            false
        }
        Incoming::Notice { method, params } => {
            let hide = |text| shared.secrets.hide(text);
            incoming::notice(&shared.pending, &shared.server, &method, &params, hide)
        }
    }
}

/// Logs its standard error, up to a limit per second.
async fn listen(stderr: pipe::Receiver, shared: Arc<Shared>) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    let mut logged = Quota::new(STDERR_LINES_A_SECOND);
    let mut bytes = Quota::new(STDERR_BYTES_A_SECOND);
    while let Ok(Some(line)) = lines.next().await {
        bytes
            .hold(u64::try_from(line.bytes.len()).unwrap_or(u64::MAX))
            .await;
        let text = shared
            .secrets
            .hide(String::from_utf8_lossy(&line.bytes).into_owned());
        let taken = logged.take(1);
        if taken.over > 0 {
            tracing::info!("[mcp:{}] ({} more lines)", shared.server, taken.over);
        }
        if taken.within {
            tracing::info!("[mcp:{}] {}", shared.server, text.trim_end());
        }
        let quoted = quote(&line.bytes, &shared.secrets);
        if !quoted.is_empty() {
            let mut kept = lock(&shared.stderr);
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(quoted);
        }
    }
}
