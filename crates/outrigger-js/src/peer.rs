//! The host's end of the channel: calls with answers, results that arrive before the answer, and requests of the
//! process.

mod answers;
mod files;
mod outbox;
mod reverse;
#[cfg(test)]
mod tests;
mod unseen;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use outrigger_protocol::login::AuthChunk;
use outrigger_protocol::rpc::{
    Enter, EventBatch, Hello, HookRan, HookResult, Log, MAX_FRAME, Message, PluginEntry, RpcError,
    SdkCredit, host, process,
};
use outrigger_stdx::sync::lock;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use self::outbox::Outbox;
use self::unseen::Unseen;
use crate::blame::Entered;
use crate::codec::{Decoder, encode, encode_call};
use crate::error::{Closed, JsError};
use crate::host_handler::HostHandler;
use crate::output::Lines;
use crate::payload::exchange::{Exchange, Ticket};
use crate::sdk::Credit;

/// Maximum number of bytes that may wait for a process that does not read. Beyond it notifications, calls and requests
/// are refused, and answers are replaced by a refusal.
const MAX_BACKLOG: usize = 2 * MAX_FRAME;

/// Shared by the reader, the writer and all callers.
pub(crate) struct Peer {
    name: String,
    /// Limits the rate at which it may log.
    lines: Arc<Lines>,
    next: AtomicU64,
    outbox: Outbox,
    open: Mutex<InFlight>,
    entered: Mutex<Entered>,
    /// Sizes of the event batches that were sent and are not processed.
    unseen: Mutex<Unseen>,
    hello: watch::Sender<Option<Hello>>,
    closed: watch::Sender<Option<Closed>>,
    /// See [`MAX_BACKLOG`].
    backlog: usize,
    handler: Arc<dyn HostHandler>,
    /// Where files for large payloads are created.
    exchange: Option<Exchange>,
}

/// The answer of one handler, and the file that it requested, if any.
pub(crate) struct Answered {
    pub(crate) result: HookResult,
    pub(crate) file: Option<Ticket>,
}

#[derive(Default)]
struct InFlight {
    calls: HashMap<u64, Call>,
    reverse: HashMap<u64, AbortHandle>,
    streams: HashMap<u64, mpsc::UnboundedSender<AuthChunk>>,
    credits: HashMap<u64, Arc<Credit>>,
    closed: bool,
}

struct Call {
    method: &'static str,
    answer: oneshot::Sender<Result<Value, RpcError>>,
    results: Option<mpsc::UnboundedSender<Answered>>,
    /// The handler whose result comes next.
    next: usize,
    /// The file that it requested.
    file: Option<Ticket>,
}

/// A call in progress. Dropping it before its answer notifies the process that no caller waits.
pub(crate) struct Pending {
    peer: Arc<Peer>,
    id: u64,
    method: &'static str,
    answer: oneshot::Receiver<Result<Value, RpcError>>,
}

impl Peer {
    pub(crate) fn new(
        lines: Arc<Lines>,
        handler: Arc<dyn HostHandler>,
        exchange: Option<Exchange>,
    ) -> Arc<Self> {
        let peer = Self {
            name: lines.name().to_owned(),
            lines,
            next: AtomicU64::new(1),
            outbox: Outbox::default(),
            open: Mutex::default(),
            entered: Mutex::default(),
            unseen: Mutex::default(),
            hello: watch::Sender::new(None),
            closed: watch::Sender::new(None),
            backlog: MAX_BACKLOG,
            handler,
            exchange,
        };
        Arc::new(peer)
    }

    /// Registers plugins that may print.
    pub(crate) fn expect_output(&self, plugins: &[PluginEntry]) {
        self.lines.expect(plugins.iter().map(|it| it.id.clone()));
    }

    pub(crate) fn hello(&self) -> watch::Receiver<Option<Hello>> {
        self.hello.subscribe()
    }

    pub(crate) fn closed(&self) -> watch::Receiver<Option<Closed>> {
        self.closed.subscribe()
    }

    pub(crate) fn entered(&self) -> MutexGuard<'_, Entered> {
        lock(&self.entered)
    }

    /// Returns the error of a call to an exited process.
    pub(crate) fn closed_error(&self) -> JsError {
        JsError::Closed {
            name: self.name.clone(),
            closed: self.closed.borrow().clone().unwrap_or_default(),
        }
    }

    /// Ends every open call and request.
    pub(crate) fn close(&self, closed: Closed) {
        self.closed.send_replace(Some(closed));
        let mut open = lock(&self.open);
        open.closed = true;
        open.calls.clear();
        open.streams.clear();
        open.credits.clear();
        for (_, task) in open.reverse.drain() {
            task.abort();
        }
    }

    /// Returns whether a call is open, or the body of one is still streaming.
    pub(crate) fn is_working(&self) -> bool {
        let open = lock(&self.open);
        !open.calls.is_empty() || !open.streams.is_empty()
    }

    /// Fails if more than `most` bytes wait for the process already.
    fn has_room(&self, most: usize) -> Result<(), JsError> {
        let bytes = self.outbox.waiting();
        if bytes > most {
            return Err(JsError::Backlog {
                name: self.name.clone(),
                bytes,
            });
        }
        Ok(())
    }

    fn enqueue(&self, frame: Bytes) -> Result<(), JsError> {
        if self.closed.borrow().is_some() {
            return Err(self.closed_error());
        }
        self.outbox.push(frame);
        Ok(())
    }

    /// Returns the stream of a call's body, until [`Peer::forget_stream`].
    pub(crate) fn stream(&self, call: u64) -> mpsc::UnboundedReceiver<AuthChunk> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut open = lock(&self.open);
        if !open.closed {
            open.streams.insert(call, sender);
        }
        receiver
    }

    pub(crate) fn forget_stream(&self, call: u64) {
        lock(&self.open).streams.remove(&call);
    }

    /// Sends events.
    pub(crate) fn events(&self, batch: &EventBatch) -> Result<(), JsError> {
        // Held, so that batches are counted in the order in which they are sent.
        let mut unseen = lock(&self.unseen);
        self.notify(host::EVENT_BATCH, batch)?;
        unseen.push(batch.events.len());
        Ok(())
    }

    /// Returns the number of events that were sent and that no hook has returned from.
    pub(crate) fn unseen(&self) -> usize {
        lock(&self.unseen).events()
    }

    /// Returns for how long there have been unprocessed events without progress.
    pub(crate) fn unseen_for(&self) -> Option<Duration> {
        lock(&self.unseen).age()
    }

    /// Sends a notification.
    pub(crate) fn notify(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<(), JsError> {
        self.has_room(self.backlog)?;
        if lock(&self.open).closed {
            return Err(self.closed_error());
        }
        self.enqueue(encode(&Outgoing {
            jsonrpc: "2.0",
            id: None,
            method,
            params,
        })?)
    }

    /// Sends a request.
    pub(crate) fn call(
        self: &Arc<Self>,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<Pending, JsError> {
        self.call_as(method, params, |_| {})
    }

    /// Sends a request, after passing its number to `on_call`.
    pub(crate) fn call_as(
        self: &Arc<Self>,
        method: &'static str,
        params: &impl Serialize,
        on_call: impl FnOnce(u64),
    ) -> Result<Pending, JsError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = encode(&Outgoing {
            jsonrpc: "2.0",
            id: Some(id),
            method,
            params,
        })?;
        self.begin(id, method, frame, None, on_call)
    }

    /// Sends a request whose parameters are JSON already; each handler's answer goes to `results` as it arrives.
    pub(crate) fn call_hooks(
        self: &Arc<Self>,
        method: &'static str,
        params: &[&[u8]],
        results: mpsc::UnboundedSender<Answered>,
    ) -> Result<Pending, JsError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let frame = encode_call(id, method, params)?;
        self.begin(id, method, frame, Some(results), |_| {})
    }

    fn begin(
        self: &Arc<Self>,
        id: u64,
        method: &'static str,
        frame: Bytes,
        results: Option<mpsc::UnboundedSender<Answered>>,
        on_call: impl FnOnce(u64),
    ) -> Result<Pending, JsError> {
        // The previous frame may be as large; with more than that the process does not read, and another call would add
        // to it.
        self.has_room(self.backlog)?;
        let (sender, answer) = oneshot::channel();
        {
            let mut open = lock(&self.open);
            if open.closed {
                drop(open);
                return Err(self.closed_error());
            }
            open.calls.insert(
                id,
                Call {
                    method,
                    answer: sender,
                    results,
                    next: 0,
                    file: None,
                },
            );
        }
        let pending = Pending {
            peer: Arc::clone(self),
            id,
            method,
            answer,
        };
        on_call(id);
        self.enqueue(frame)?;
        Ok(pending)
    }

    /// Writes what is queued until the channel ends.
    pub(crate) async fn write(self: Arc<Self>, sink: OwnedWriteHalf) {
        self.outbox.write(sink).await;
    }

    /// Reads until the channel ends or violates the protocol; returns the reason in the latter case.
    pub(crate) async fn read(
        self: Arc<Self>,
        mut source: impl AsyncRead + Unpin,
    ) -> Option<String> {
        let mut decoder = Decoder::default();
        loop {
            match source.read_buf(decoder.buffer()).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            loop {
                let received = match decoder.next_frame() {
                    Ok(None) => break,
                    Ok(Some(frame)) => self.receive(&frame),
                    Err(error) => Err(error),
                };
                if let Err(error) = received {
                    return Some(error.to_string());
                }
            }
        }
    }

    fn receive(self: &Arc<Self>, frame: &[u8]) -> Result<(), JsError> {
        let message: Message =
            serde_json::from_slice(frame).map_err(|error| JsError::BadFrame {
                reason: error.to_string(),
            })?;
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                self.request(&method, id, message.params.unwrap_or_default())?;
            }
            (Some(method), None) => {
                self.notification(&method, message.params.unwrap_or_default())?
            }
            (None, Some(id)) => {
                let answer = message
                    .error
                    .map_or(Ok(message.result.unwrap_or_default()), Err);
                self.receive_answer(id, answer)?;
            }
            (None, None) => {
                return Err(JsError::BadFrame {
                    reason: "neither a method nor an id".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn notification(self: &Arc<Self>, method: &str, params: Value) -> Result<(), JsError> {
        match method {
            process::HELLO => {
                self.hello.send_replace(Some(read(params)?));
            }
            process::ENTER => lock(&self.entered).enter(read::<Enter>(params)?),
            process::LEAVE => {
                lock(&self.entered).leave();
                lock(&self.unseen).leave();
            }
            process::YIELD => lock(&self.entered).turned(),
            process::HOOK_RESULT => self.result(read(params)?)?,
            process::FAILED => self.handler.failed(read(params)?),
            process::RAN => {
                let HookRan { calls } = read(params)?;
                self.handler.observed(calls);
            }
            process::STAGE => self.handler.stage(read(params)?),
            process::TOOL_METADATA => self.handler.metadata(read(params)?),
            process::AUTH_CHUNK => {
                let chunk: AuthChunk = read(params)?;
                if let Some(stream) = lock(&self.open).streams.get(&chunk.call) {
                    let _ = stream.send(chunk);
                }
            }
            process::SDK_CREDIT => {
                let SdkCredit { request, bytes } = read(params)?;
                if let Some(credit) = lock(&self.open).credits.get(&request) {
                    credit.grant(bytes);
                }
            }
            process::LOG => {
                let mut log: Log = read(params)?;
                let message = std::mem::take(&mut log.message);
                let owner = log.plugin.take();
                self.lines
                    .report(owner.as_deref(), &message, |owner, message| {
                        log.message = message.to_owned();
                        self.handler.log(owner, log);
                    });
            }
            host::CANCEL => {
                let id = params.get("id").and_then(Value::as_u64);
                let mut open = lock(&self.open);
                if let Some(task) = id.and_then(|id| {
                    open.credits.remove(&id);
                    open.reverse.remove(&id)
                }) {
                    task.abort();
                }
            }
            // A newer host script may send messages that this host does not know.
            _ => tracing::debug!("[plugin:{}] unknown notification {method}", self.name),
        }
        Ok(())
    }
}

/// Like [`Message`], borrowing what is sent.
#[derive(Serialize)]
struct Outgoing<'a, T> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'static str,
    params: &'a T,
}

fn rpc_error(code: i64, message: String) -> RpcError {
    RpcError {
        code,
        message,
        data: None,
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, JsError> {
    serde_json::from_value(params).map_err(|error| JsError::BadFrame {
        reason: error.to_string(),
    })
}

impl Pending {
    /// Returns its number.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the answer. Has no deadline of its own; safe to drop and to call again.
    pub(crate) async fn answer(&mut self) -> Result<Value, JsError> {
        match (&mut self.answer).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(JsError::Plugin {
                code: error.code,
                message: error.message,
            }),
            Err(_) => Err(self.peer.closed_error()),
        }
    }

    /// Waits for the answer as the method's type.
    pub(crate) async fn typed<T: DeserializeOwned>(&mut self) -> Result<T, JsError> {
        let value = self.answer().await?;
        serde_json::from_value(value).map_err(|error| JsError::BadAnswer {
            method: self.method,
            reason: error.to_string(),
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let unanswered = lock(&self.peer.open).calls.remove(&self.id).is_some();
        if unanswered {
            // Refused only if the process has exited.
            let _ = self.peer.notify(host::CANCEL, &json!({ "id": self.id }));
        }
    }
}
