//! One connection: its frames, its calls, its end.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::stream::SplitSink;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::invoke::{BrainFrame, BridgeFrame, Invoke};
use outrigger_tools::CancelFlag;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep_until, timeout};

use crate::layers::{Call, Outcome};
use crate::server::Shared;
use crate::{Params, Refusal, frame};

/// A brain that does not take an answer for so long is gone.
const SENDING: Duration = Duration::from_secs(10);
/// Pause between signs of life that are asked for.
const PINGS: Duration = Duration::from_secs(30);
/// Frames that a connection may have read and not answered.
const WAITING: usize = 256;

type Running = Arc<Mutex<HashMap<String, watch::Sender<bool>>>>;

/// Serves a connection to its end. What its calls started ends with it.
pub(crate) async fn serve(shared: Arc<Shared>, socket: WebSocket, number: u64) {
    let (mut sink, mut stream) = socket.split();
    let (answers, waiting) = mpsc::channel::<BridgeFrame>(WAITING);
    let running = Running::default();
    // Dropped at the end, which drops what runs.
    let mut calls = JoinSet::new();
    let hello = BridgeFrame::Hello {
        protocol: 1,
        root: shared.options.root.display().to_string(),
        contracts: Contract::ALL.map(|it| it.name().to_owned()).into(),
        frame_bytes: Some(shared.options.frame_bytes as u64),
    };
    let reading = async {
        let mut heard = Instant::now();
        loop {
            let next = tokio::select! {
                Some(_) = calls.join_next(), if !calls.is_empty() => None,
                () = sleep_until(heard + shared.options.idle) => {
                    return Some((close_code::POLICY, "no whole frame came in time"));
                }
                message = stream.next() => match message.inspect(|_| heard = Instant::now()) {
                    None => return None,
                    Some(Err(error)) => return too_large(error),
                    Some(Ok(Message::Text(text))) => match frame::read(&text) {
                        Ok(BrainFrame::Invoke(invoke)) => {
                            begin(&shared, invoke, number, &running, &answers, &mut calls)
                        }
                        Ok(BrainFrame::Cancel(cancel)) => {
                            if let Some(switch) = lock(&running).get(&cancel.id) {
                                let _ = switch.send(true);
                            }
                            None
                        }
                        Err((id, refusal)) => Some(error(id, refusal)),
                    },
                    Some(Ok(Message::Binary(_))) => {
                        Some(error(None, Refusal::new("bridge.frame", "frames are text")))
                    }
                    Some(Ok(Message::Close(_))) => return None,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
                },
            };
            if let Some(frame) = next {
                // Whoever takes no answers is not read either, and ends as the writing does.
                let _ = answers.send(frame).await;
            }
        }
    };
    // Side by side: a large answer on its way must not keep frames from being read, or both sides wait for each other.
    let why = tokio::select! {
        why = reading => why,
        () = write(&mut sink, hello, waiting) => None,
    };
    if let Some((code, reason)) = why {
        let close = Message::Close(Some(CloseFrame {
            code,
            reason: reason.into(),
        }));
        let _ = timeout(SENDING, sink.send(close)).await;
    }
    calls.shutdown().await;
}

/// Sends answers and asks for signs of life, until the brain does not take them.
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

/// A frame over the limit cannot be read to its end, so the connection cannot go on.
fn too_large(error: axum::Error) -> Option<(u16, &'static str)> {
    let error = error.into_inner();
    let error = error.downcast_ref::<tokio_tungstenite::tungstenite::Error>()?;
    matches!(error, tokio_tungstenite::tungstenite::Error::Capacity(_))
        .then_some((close_code::SIZE, "bridge.too_large"))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error(id: Option<String>, refusal: Refusal) -> BridgeFrame {
    BridgeFrame::Error {
        id,
        code: refusal.code,
        message: refusal.message,
    }
}

/// Takes a call up; the answer where it is refused at once.
fn begin(
    shared: &Arc<Shared>,
    invoke: Invoke,
    number: u64,
    running: &Running,
    answers: &mpsc::Sender<BridgeFrame>,
    calls: &mut JoinSet<()>,
) -> Option<BridgeFrame> {
    let id = invoke.id.clone();
    let (switch, cancel) = CancelFlag::new();
    {
        let mut running = lock(running);
        if running.contains_key(&id) {
            let refusal = Refusal::new("bridge.id", "a call of this id runs");
            return Some(error(Some(id), refusal));
        }
        running.insert(id.clone(), switch);
    }
    let mut call = Call::new(invoke, number);
    let mut seen = 0;
    let mut refused = None;
    for layer in &shared.layers {
        seen += 1;
        if let Err(refusal) = layer.before(&mut call) {
            tracing::debug!(
                layer = layer.name(),
                code = refusal.code,
                "a call was refused"
            );
            refused = Some(refusal);
            break;
        }
    }
    let (shared, running, answers) = (Arc::clone(shared), Arc::clone(running), answers.clone());
    let work = async move {
        let outcome = match refused {
            Some(refusal) => Err(refusal),
            None => execute(&shared, &mut call, cancel).await,
        };
        for layer in shared.layers.iter().take(seen).rev() {
            layer.after(&call, &outcome);
        }
        lock(&running).remove(&id);
        // The place of this call is free before its answer is seen.
        drop(call);
        let frame = match outcome {
            Ok(output) => BridgeFrame::Result { id, output },
            Err(refusal) => error(Some(id), refusal),
        };
        let _ = answers.send(frame).await;
    };
    calls.spawn(work);
    None
}

async fn execute(shared: &Shared, call: &mut Call, cancel: CancelFlag) -> Outcome {
    let most = shared.options.deadline;
    let asked = call.invoke.deadline_ms.map(Duration::from_millis);
    let deadline = asked.map_or(most, |asked| asked.min(most));
    if let Some(Params::Exec(params)) = &mut call.params {
        let ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        params.timeout = Some(params.timeout.unwrap_or(ms).clamp(1, ms.max(1)));
    }
    let work = AssertUnwindSafe(shared.hands.execute(call, cancel.clone())).catch_unwind();
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Refusal::new("bridge.cancelled", "the brain cancelled the call")),
        // A command ends at its own time limit and says what it printed until then.
        ended = timeout(deadline + Duration::from_secs(2), work) => match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Refusal::new("bridge.failed", "the call failed inside; this is a defect of the bridge")),
            Err(_) => Err(Refusal::new(
                "bridge.timeout",
                format!("the call did not end within {} ms and was stopped", deadline.as_millis()),
            )),
        },
    }
}
