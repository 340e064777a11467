//! One connection: its frames, its calls, its end.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::invoke::{BridgeFrame, ControllerFrame, Invoke};
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::process_time;
use outrigger_stdx::sync::lock;
use outrigger_tools::CancelFlag;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until, timeout};

use crate::layers::{Call, Outcome};
use crate::server::Shared;
use crate::{BridgeError, Params, frame};

/// A controller that accepts no answer for so long is gone.
const SENDING: Duration = Duration::from_secs(10);
/// Pause between signs of life that are asked for.
const PINGS: Duration = Duration::from_secs(30);
/// Frames that a connection may have read and not answered, beside the calls that run.
const WAITING: usize = 256;

type Running = Arc<Mutex<HashMap<String, watch::Sender<bool>>>>;

/// Why a connection is closed, where the other side is sent a reason: code and reason.
type Close = Option<(u16, &'static str)>;

/// Serves a connection until it closes. What its calls started ends with it.
pub(crate) async fn serve(shared: Arc<Shared>, socket: WebSocket, number: u64) {
    let (mut sink, mut stream) = socket.split();
    let (answers, waiting) = mpsc::channel(WAITING + shared.options.concurrent);
    let hello = BridgeFrame::Hello {
        protocol: 1,
        root: shared.options.root.display().to_string(),
        contracts: Contract::OF_BRIDGE.map(|it| it.name().to_owned()).into(),
        frame_bytes: Some(shared.options.frame_bytes as u64),
    };
    let mut connection = Connection {
        shared,
        number,
        answers,
        running: Running::default(),
        calls: JoinSet::new(),
    };
    // Side by side: a large answer on its way must not keep frames from being read, or both sides wait for each other.
    let why = tokio::select! {
        why = connection.read(&mut stream) => why,
        () = write(&mut sink, hello, waiting) => None,
    };
    if let Some((code, reason)) = why {
        let close = Message::Close(Some(CloseFrame {
            code,
            reason: reason.into(),
        }));
        let _ = timeout(SENDING, sink.send(close)).await;
    }
    connection.calls.shutdown().await;
}

struct Connection {
    shared: Arc<Shared>,
    number: u64,
    answers: mpsc::Sender<BridgeFrame>,
    running: Running,
    /// Ended at the end, which drops what runs and writes down that it was stopped.
    calls: JoinSet<()>,
}

impl Connection {
    /// Reads frames until there are none, or until the connection has to be closed.
    async fn read(&mut self, stream: &mut SplitStream<WebSocket>) -> Close {
        let mut heard = Instant::now();
        loop {
            let message = tokio::select! {
                Some(_) = self.calls.join_next(), if !self.calls.is_empty() => continue,
                () = sleep_until(heard + self.shared.options.idle) => {
                    return Some((close_code::POLICY, "no whole frame came in time"));
                }
                message = stream.next() => message.inspect(|_| heard = Instant::now()),
            };
            let frame = match message {
                None | Some(Ok(Message::Close(_))) => return None,
                Some(Err(error)) => return too_large(error),
                Some(Ok(Message::Text(text))) => match self.take(&text).await {
                    ControlFlow::Continue(frame) => frame,
                    ControlFlow::Break(()) => return None,
                },
                Some(Ok(Message::Binary(_))) => {
                    let why = BridgeError::new("bridge.frame", "frames are text");
                    Some(refused(&self.shared, self.number, None, why))
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
            };
            if let Some(frame) = frame {
                // A controller that accepts no answers is not read from either, and is closed when writing to it fails.
                let _ = self.answers.send(frame).await;
            }
        }
    }

    /// Takes a frame up; what it is answered with at once.
    async fn take(&mut self, text: &str) -> ControlFlow<(), Option<BridgeFrame>> {
        match frame::read(text) {
            Ok(ControllerFrame::Invoke(invoke)) => {
                // Room for the answer is reserved first: a controller that accepts none begins no calls.
                let Ok(room) = self.answers.clone().reserve_owned().await else {
                    return ControlFlow::Break(());
                };
                let (shared, running) = (&self.shared, &self.running);
                begin(shared, invoke, self.number, running, room, &mut self.calls);
                ControlFlow::Continue(None)
            }
            Ok(ControllerFrame::Cancel(cancel)) => {
                if let Some(switch) = lock(&self.running).get(&cancel.id) {
                    let _ = switch.send(true);
                }
                ControlFlow::Continue(None)
            }
            Err((id, refusal)) => {
                ControlFlow::Continue(Some(refused(&self.shared, self.number, id, refusal)))
            }
        }
    }
}

/// Sends answers and pings, until the controller does not accept them.
async fn write(
    sink: &mut SplitSink<WebSocket, Message>,
    hello: BridgeFrame,
    mut waiting: mpsc::Receiver<BridgeFrame>,
) {
    let mut pings = interval_at(Instant::now() + PINGS, PINGS);
    let mut next = Some(hello);
    loop {
        let message = match next.take() {
            Some(frame) => Message::text(serde_json::to_string(&frame).unwrap_or_default()),
            // A page cannot send signs of life by itself; its browser answers these.
            None => Message::Ping(Vec::new().into()),
        };
        if !matches!(timeout(SENDING, sink.send(message)).await, Ok(Ok(()))) {
            return;
        }
        tokio::select! {
            frame = waiting.recv() => match frame {
                Some(frame) => next = Some(frame),
                None => return,
            },
            _ = pings.tick() => {}
        }
    }
}

/// The rest of a frame over the limit cannot be skipped, so the connection cannot continue.
fn too_large(error: axum::Error) -> Close {
    let error = error.into_inner();
    let error = error.downcast_ref::<tokio_tungstenite::tungstenite::Error>()?;
    matches!(error, tokio_tungstenite::tungstenite::Error::Capacity(_))
        .then_some((close_code::SIZE, "bridge.too_large"))
}

fn error(id: Option<String>, refusal: BridgeError) -> BridgeFrame {
    BridgeFrame::Error {
        id,
        code: refusal.code,
        message: refusal.message,
        output: refusal.output,
    }
}

/// What is refused before it is a call; it is written down like one.
fn refused(shared: &Shared, number: u64, id: Option<String>, refusal: BridgeError) -> BridgeFrame {
    let subject = match &id {
        Some(id) => format!("frame {id} of connection {number}"),
        None => format!("frame of connection {number}"),
    };
    shared.executor.audit(AuditRecord {
        subject: Some(subject),
        errored: true,
        policy_check_result: format!("refused: {}", refusal.code),
        detail: Some(refusal.message.clone()),
        ..AuditRecord::new(AuditKind::Bridge, 0, &refusal.code)
    });
    error(id, refusal)
}

/// A call that was accepted. However it ends, the layers that have seen it are notified; when it is dropped without an
/// outcome, its connection is gone.
struct AcceptedCall {
    shared: Arc<Shared>,
    running: Running,
    call: Call,
    /// How many layers have seen it.
    seen: usize,
    over: bool,
}

impl AcceptedCall {
    /// Its place is free when this is over, before its answer is seen.
    fn end(mut self, outcome: Outcome) -> BridgeFrame {
        self.tell(&outcome);
        let id = self.call.invoke.id.clone();
        match outcome {
            Ok(output) => BridgeFrame::Result { id, output },
            Err(refusal) => error(Some(id), refusal),
        }
    }

    fn tell(&mut self, outcome: &Outcome) {
        self.over = true;
        for layer in self.shared.layers.iter().take(self.seen).rev() {
            layer.after(&self.call, outcome);
        }
        lock(&self.running).remove(&self.call.invoke.id);
    }
}

impl Drop for AcceptedCall {
    fn drop(&mut self) {
        if !self.over {
            let why = "the connection was gone before the call had ended, and the call was stopped";
            self.tell(&Err(BridgeError::new("bridge.gone", why)));
        }
    }
}

/// Takes a call up. Its answer has room.
fn begin(
    shared: &Arc<Shared>,
    invoke: Invoke,
    number: u64,
    running: &Running,
    room: mpsc::OwnedPermit<BridgeFrame>,
    calls: &mut JoinSet<()>,
) {
    let id = invoke.id.clone();
    let (switch, cancel) = CancelFlag::new();
    {
        let mut open = lock(running);
        if open.contains_key(&id) {
            drop(open);
            let refusal = BridgeError::new("bridge.id", "a call of this id runs");
            room.send(refused(shared, number, Some(id), refusal));
            return;
        }
        open.insert(id, switch);
    }
    let mut taken = AcceptedCall {
        shared: Arc::clone(shared),
        running: Arc::clone(running),
        call: Call::new(invoke, number),
        seen: 0,
        over: false,
    };
    for layer in &shared.layers {
        taken.seen += 1;
        if let Err(refusal) = layer.before(&mut taken.call) {
            tracing::debug!(
                layer = layer.name(),
                code = refusal.code,
                "a call was refused"
            );
            room.send(taken.end(Err(refusal)));
            return;
        }
    }
    let shared = Arc::clone(shared);
    calls.spawn(async move {
        let outcome = execute(&shared, &mut taken.call, cancel).await;
        room.send(taken.end(outcome));
    });
}

async fn execute(shared: &Shared, call: &mut Call, cancel: CancelFlag) -> Outcome {
    let most = shared.options.deadline;
    let asked = call.invoke.deadline_ms.map(Duration::from_millis);
    let deadline = asked.map_or(most, |asked| asked.min(most));
    // A command ends at its own time limit and says what it printed until then.
    let mut to_the_deadline = false;
    if let Some(Params::Exec(params)) = &mut call.params {
        let ms = u64::try_from(deadline.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        to_the_deadline = params.timeout.is_none_or(|asked| asked >= ms);
        params.timeout = Some(params.timeout.unwrap_or(ms).clamp(1, ms));
    }
    let late = |output: Option<String>| BridgeError {
        output,
        ..BridgeError::new(
            "bridge.timeout",
            format!(
                "the call did not end within {} ms and was stopped",
                deadline.as_millis()
            ),
        )
    };
    let began = process_time::Instant::now();
    let work = AssertUnwindSafe(shared.executor.execute(call, cancel.clone())).catch_unwind();
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(BridgeError::new("bridge.cancelled", "the controller cancelled the call")),
        ended = process_time::timeout(deadline + Duration::from_secs(2), work) => match ended {
            Ok(Ok(Ok(output)))
                if to_the_deadline && began.elapsed() >= deadline && has_no_exit(&output) =>
            {
                Err(late(Some(output.output)))
            }
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(BridgeError::new("bridge.failed", "the call failed inside; this is a defect of the bridge")),
            Err(_) => Err(late(None)),
        },
    }
}

/// A command that was stopped has no exit code.
fn has_no_exit(output: &ToolOutput) -> bool {
    output.metadata.get("exit").is_some_and(Value::is_null)
}
