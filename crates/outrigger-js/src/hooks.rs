//! Hook calls and the transfer of their payloads: inline, by file, or as differences to what the process keeps.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::history::History;
use outrigger_protocol::hook::{HookFailure, HookOutcome, Patch};
use outrigger_protocol::rpc::{
    HandlerRef, HookResult, HookRun, MAX_FRAME, NEED_WHOLE, OpenField, host,
};
use outrigger_protocol::transfer::FileAnswer;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::process_time::{Instant, timeout};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::error::JsError;
use crate::payload::exchange::{Exchange, ExchangeRoot, Ticket};
use crate::payload::mirror::Mirrors;
use crate::payload::texts;
use crate::peer::{Answered, Pending};
use crate::process::{JsProcess, millis};

/// The hook whose messages are mirrored.
const MESSAGES: &str = "experimental.chat.messages.transform";
/// Maximum size in bytes of an answer file besides the changes.
const ENVELOPE: u64 = 4096;

/// How large payloads of hooks are sent to a process.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Where files are created (flag `plugin_large_payload_file_ipc`); `None` without the flag.
    pub files: Option<ExchangeRoot>,
    /// Maximum size in bytes of an inline payload if files are used (`limits.plugin_inline_bytes`, A10).
    pub inline: usize,
    /// The process keeps the messages of sessions (flag `plugin_message_mirror`).
    pub mirror: bool,
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            files: None,
            inline: 64 * 1024,
            mirror: false,
        }
    }
}

impl Transfer {
    /// Creates the folder for one process; without it everything is sent inline.
    pub(crate) fn exchange(&self, process: &str) -> Option<Exchange> {
        match self.files.as_ref()?.process() {
            Ok(exchange) => Some(exchange),
            Err(error) => {
                tracing::warn!("plugin process {process}: payloads are sent inline: {error}");
                None
            }
        }
    }
}

/// How the payload of a call was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// In the request.
    #[default]
    Inline,
    /// In a file.
    File,
    /// As differences to what the process keeps.
    Mirror,
}

/// Data sent by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Size of the payload as JSON, in bytes.
    pub payload: u64,
    /// Bytes of it sent to the process, in frames and files.
    pub bytes: u64,
    /// Way of transfer.
    pub way: Way,
    /// Number of the call, which the process reports with the code that it enters for it; 0 before it is sent.
    pub call: u64,
}

/// A call of one hook of several plugins, one after another.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    /// OpenCode's name of the hook.
    pub hook: &'a str,
    /// Consecutive handlers in this process.
    pub handlers: &'a [HandlerRef],
    /// Fields that may be changed.
    pub open: &'a [OpenField],
    /// The payloads.
    pub items: &'a [HookPayload],
    /// Session of the messages: the key under which the process keeps them.
    pub session: Option<&'a str>,
    /// Number of the chain, for a plugin that may reach its custom points from it.
    pub chain: Option<u64>,
}

/// State for sending payloads to a process.
#[derive(Debug)]
pub(crate) struct Carrier {
    exchange: Option<Exchange>,
    inline: usize,
    mirrors: Option<Mirrors>,
}

impl Carrier {
    pub(crate) fn new(transfer: &Transfer, exchange: Option<Exchange>, mirror: bool) -> Self {
        Self {
            exchange,
            inline: transfer.inline,
            mirrors: (transfer.mirror && mirror).then(Mirrors::default),
        }
    }

    /// Returns the size above which answers are sent by file.
    pub(crate) fn file_over(&self) -> Option<u64> {
        self.exchange
            .as_ref()
            .and_then(|_| u64::try_from(self.inline).ok())
    }

    /// Returns whether a payload is sent by file; `is_over` tells whether it has more than a given number of bytes.
    fn by_file(&self, is_over: impl FnOnce(usize) -> bool) -> bool {
        self.exchange.is_some() && is_over(self.inline)
    }

    /// Writes the parts of a payload to a file; returns the parts if none can be created.
    async fn file(&self, key: &'static str, parts: Vec<Vec<u8>>) -> Result<Ticket, Vec<Vec<u8>>> {
        let Some(exchange) = self.exchange.clone() else {
            return Err(parts);
        };
        let parts = Arc::new(parts);
        let content = Arc::clone(&parts);
        let made = tokio::task::spawn_blocking(move || exchange.offer(key, &content)).await;
        match made.map_err(io::Error::other).flatten() {
            Ok(ticket) => Ok(ticket),
            Err(error) => {
                tracing::warn!("a payload is sent inline, since no file can be made: {error}");
                Err(Arc::unwrap_or_clone(parts))
            }
        }
    }
}

/// Parameters of a call without their closing brace and without the payload.
#[derive(Serialize)]
struct Head<'a> {
    hook: &'a str,
    handlers: &'a [HandlerRef],
    open: &'a [OpenField],
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    mirror: Option<MirrorHead<'a>>,
}

#[derive(Clone, Copy, Serialize)]
struct MirrorHead<'a> {
    input: &'a Value,
    session: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<u64>,
    revision: u64,
    bytes: u64,
}

/// The parts of a call whose messages are mirrored.
struct Mirrored<'a> {
    mirrors: &'a Mirrors,
    session: &'a str,
    input: &'a Value,
    messages: &'a History,
}

/// A call that has been sent. The file with its payload exists as long as this value.
struct Running {
    call: Pending,
    results: mpsc::UnboundedReceiver<Answered>,
    _file: Option<Ticket>,
}

impl JsProcess {
    /// Runs a hook of several plugins, one after another; `on_result` gets each answer as it comes. `deadline` is for
    /// each handler on its own: it starts again when the one before has answered.
    ///
    /// # Errors
    /// As [`JsProcess::hook_call`].
    pub async fn hook_run(
        &self,
        run: &HookRun,
        deadline: Duration,
        on_result: impl FnMut(HookResult) + Send,
    ) -> Result<(), JsError> {
        let call = HookCall {
            hook: &run.hook,
            handlers: &run.handlers,
            open: &run.open,
            items: &run.items,
            session: None,
            chain: run.chain,
        };
        let mut sent = Sent::default();
        self.hook_call(&call, deadline, &mut sent, on_result).await
    }

    /// As [`JsProcess::hook_run`], over payloads that stay the caller's; `sent` is filled in before the first answer. A
    /// patch may carry an [`Patch::order`] where the messages were mirrored.
    ///
    /// # Errors
    /// [`JsError::CallTimeout`] names the handler that did not answer; the results of those before it have been given
    /// to `on_result`. A handler that threw is not an error of the call but a result.
    pub async fn hook_call(
        &self,
        call: &HookCall<'_>,
        deadline: Duration,
        sent: &mut Sent,
        mut on_result: impl FnMut(HookResult) + Send,
    ) -> Result<(), JsError> {
        let began = Instant::now();
        for whole in [false, true] {
            let (method, begun) = match self.mirrored(call) {
                Some(it) => {
                    let begun = self.differences(call, it, whole, sent);
                    (host::HOOK_MIRROR, timeout(deadline, begun).await)
                }
                None => {
                    let begun = self.whole(call, sent);
                    (host::HOOK_RUN, timeout(deadline, begun).await)
                }
            };
            let running =
                begun.unwrap_or_else(|_| Err(self.late(method, deadline, call.handlers)))?;
            sent.call = running.call.id();
            let ended = self
                .collect(running, call.handlers, began, deadline, &mut on_result)
                .await;
            match ended {
                // No handler was called, so calling again is not a repetition.
                Err(JsError::Plugin { code, .. }) if code == NEED_WHOLE && !whole => {}
                ended => return ended,
            }
        }
        Ok(())
    }

    /// Sends the whole payload.
    async fn whole(&self, call: &HookCall<'_>, sent: &mut Sent) -> Result<Running, JsError> {
        if self
            .carrier
            .by_file(|most| texts::is_over(call.items, most))
        {
            let parted = texts::part(call.items).map_err(bad)?;
            let (payload, parts) = (parted.size, parted.into_parts());
            let bytes = parts.iter().map(|part| part.len() as u64).sum();
            if let Ok(file) = self.carrier.file("items", parts).await {
                *sent = Sent {
                    payload,
                    bytes,
                    way: Way::File,
                    call: 0,
                };
                return self.begin(host::HOOK_INVOKE_FILE, call, None, Payload::File(file));
            }
        }
        let items = json(&call.items)?;
        *sent = Sent {
            payload: items.len() as u64,
            bytes: items.len() as u64,
            way: Way::Inline,
            call: 0,
        };
        self.begin(host::HOOK_RUN, call, None, Payload::Here("items", items))
    }

    /// Returns the parts of a mirrored call; `None` if it is not one.
    fn mirrored<'a>(&'a self, call: &HookCall<'a>) -> Option<Mirrored<'a>> {
        let (mirrors, session) = (self.carrier.mirrors.as_ref()?, call.session?);
        let [
            HookPayload {
                input,
                output,
                history: Some(messages),
            },
        ] = call.items
        else {
            return None;
        };
        let alone = output.as_object().is_none_or(Map::is_empty);
        (call.hook == MESSAGES && alone).then_some(Mirrored {
            mirrors,
            session,
            input,
            messages,
        })
    }

    /// Sends what the process does not have yet.
    async fn differences(
        &self,
        call: &HookCall<'_>,
        it: Mirrored<'_>,
        whole: bool,
        sent: &mut Sent,
    ) -> Result<Running, JsError> {
        let kept = it.mirrors.session(it.session);
        // Held until the frame is queued: the process applies it to the list of the previous frame.
        let mut kept = kept.lock().await;
        if whole {
            kept.forget();
        }
        let pieces = kept.delta(it.messages)?;
        let bytes = it.messages.bytes();
        let head = MirrorHead {
            input: it.input,
            session: it.session,
            base: kept.base(),
            revision: kept.next(),
            bytes,
        };
        let envelope = json(&[HookPayload::new(
            it.input.clone(),
            serde_json::json!({"messages": []}),
        )])?;
        let commas = it.messages.len().saturating_sub(1);
        *sent = Sent {
            payload: (envelope.len() + commas) as u64 + bytes,
            bytes: pieces.len() as u64,
            way: Way::Mirror,
            call: 0,
        };
        let payload = if self.carrier.by_file(|most| pieces.len() > most) {
            let parts = vec![pieces, b"}".to_vec()];
            match self.carrier.file("pieces", parts).await {
                Ok(file) => Payload::File(file),
                Err(mut parts) => Payload::Here("pieces", parts.swap_remove(0)),
            }
        } else {
            Payload::Here("pieces", pieces)
        };
        let running = self.begin(host::HOOK_MIRROR, call, Some(head), payload)?;
        kept.take(it.messages);
        it.mirrors.bound(it.session, bytes);
        Ok(running)
    }

    fn begin(
        &self,
        method: &'static str,
        call: &HookCall<'_>,
        mirror: Option<MirrorHead<'_>>,
        payload: Payload,
    ) -> Result<Running, JsError> {
        let path = match &payload {
            Payload::File(file) => Some(file.path().to_string_lossy()),
            Payload::Here(..) => None,
        };
        let token = match &payload {
            Payload::File(file) => Some(file.token()),
            Payload::Here(..) => None,
        };
        let mut head = json(&Head {
            hook: call.hook,
            handlers: call.handlers,
            open: call.open,
            chain: call.chain,
            file: path.as_deref(),
            token,
            mirror,
        })?;
        let (sender, results) = mpsc::unbounded_channel();
        let (call, file) = match payload {
            Payload::File(file) => (self.peer.call_hooks(method, &[&head], sender)?, Some(file)),
            Payload::Here(key, body) => {
                head.pop();
                let key = format!(",\"{key}\":");
                let parts: [&[u8]; 4] = [&head, key.as_bytes(), &body, b"}"];
                (self.peer.call_hooks(method, &parts, sender)?, None)
            }
        };
        Ok(Running {
            call,
            results,
            _file: file,
        })
    }

    /// Waits for the answers of all handlers, each within its deadline; that of the first one is counted from `began`.
    async fn collect(
        &self,
        mut running: Running,
        handlers: &[HandlerRef],
        began: Instant,
        deadline: Duration,
        on_result: &mut (impl FnMut(HookResult) + Send),
    ) -> Result<(), JsError> {
        let mut left = deadline.saturating_sub(began.elapsed());
        for (index, _) in handlers.iter().enumerate() {
            let next = async {
                tokio::select! {
                    biased;
                    Some(answered) = running.results.recv() => Ok(Some(self.read(answered).await)),
                    early = running.call.answer() => early.map(|_| None),
                }
            };
            let waiting = handlers.get(index..).unwrap_or_default();
            let next = timeout(left, next)
                .await
                .map_err(|_| self.late(host::HOOK_RUN, deadline, waiting))?;
            left = deadline;
            match next {
                Ok(Some(mut result)) => {
                    // Its own clock goes on while it is frozen.
                    result.ms = result.ms.min(began.elapsed().as_secs_f64() * 1000.0);
                    on_result(result);
                }
                // It ends early after a handler that changed a forbidden field, or because the process exited. Earlier
                // results are available, whichever is checked first.
                ended => {
                    while let Ok(answered) = running.results.try_recv() {
                        on_result(self.read(answered).await);
                    }
                    return ended.map(|_| ());
                }
            }
        }
        self.within(host::HOOK_RUN, deadline, running.call.answer())
            .await?;
        Ok(())
    }

    fn late(&self, method: &'static str, deadline: Duration, waiting: &[HandlerRef]) -> JsError {
        JsError::CallTimeout {
            method,
            ms: millis(deadline),
            handler: waiting.first().cloned(),
            entered: self.entered(),
        }
    }

    /// Adds the part of a result that is in a file. An unusable file is a failure of the handler, with nothing changed: its
    /// code wrote to it, or kept the host script from doing so.
    async fn read(&self, answered: Answered) -> HookResult {
        let Answered { mut result, file } = answered;
        let Some(file) = file.filter(|_| result.outcome == HookOutcome::Continue) else {
            return result;
        };
        let token = file.token().to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let bytes = file.read(MAX_FRAME as u64 + ENVELOPE)?;
            serde_json::from_slice::<FileAnswer>(&bytes).map_err(io::Error::other)
        });
        let answer = read.await.map_err(io::Error::other).flatten();
        let wrong = match answer {
            Ok(answer) if answer.token == token => {
                let (items, order) = (answer.items, answer.order);
                result.outcome = HookOutcome::Patch(Patch { items, order });
                return result;
            }
            Ok(_) => "it has another token".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("the file of its answer cannot be used: {wrong}");
        result.outcome = HookFailure::Threw { message }.into();
        result
    }
}

enum Payload {
    Here(&'static str, Vec<u8>),
    File(Ticket),
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, JsError> {
    serde_json::to_vec(value).map_err(bad)
}

fn bad(error: impl std::fmt::Display) -> JsError {
    JsError::BadFrame {
        reason: error.to_string(),
    }
}
