//! Server-sent events: `/event` for one folder, `/global/event` for all.
//!
//! The reference's form: a first `server.connected`, then each event as one `data:` line, a `server.heartbeat` every ten
//! seconds. A client that is so slow that events were dropped has its stream ended, so that it asks anew instead of going on
//! with a hole; nobody waits for it (C15).

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::dispatch::{FromPlugin, directory_of};
use crate::error::ApiError;
use crate::hub::{DISPOSED, Hub, Told, fresh};

/// The reference's interval.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// `GET /event`.
pub(crate) async fn of_folder(
    State(hub): State<Hub>,
    request: Request,
) -> Result<Response, ApiError> {
    refuse_plugins(&request)?;
    let directory = hub.resolve(directory_of(&request).as_deref());
    // Its first event is behind `server.connected`.
    let feed = Feed::new(&hub, Some(directory.clone()));
    hub.instance(&directory).await?;
    Ok(answer(feed))
}

/// `GET /global/event`.
pub(crate) async fn of_all(State(hub): State<Hub>, request: Request) -> Result<Response, ApiError> {
    refuse_plugins(&request)?;
    Ok(answer(Feed::new(&hub, None)))
}

/// The plugins' channel answers whole bodies.
fn refuse_plugins(request: &Request) -> Result<(), ApiError> {
    match request.extensions().get::<FromPlugin>() {
        Some(_) => Err(ApiError::unsupported(
            "a stream of events over a plugin's `client` (use its `event` hook)",
        )),
        None => Ok(()),
    }
}

fn answer(feed: Feed) -> Response {
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ];
    (headers, Body::from_stream(stream(feed))).into_response()
}

struct Feed {
    told: broadcast::Receiver<Told>,
    closing: watch::Receiver<bool>,
    heartbeat: Interval,
    /// None: every folder, each event in an envelope.
    directory: Option<PathBuf>,
    phase: Phase,
}

enum Phase {
    Begins,
    Runs,
    Over,
}

impl Feed {
    fn new(hub: &Hub, directory: Option<PathBuf>) -> Self {
        let mut heartbeat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            told: hub.listen(),
            closing: hub.closing(),
            heartbeat,
            directory,
            phase: Phase::Begins,
        }
    }

    /// An event of the stream itself.
    fn own(&self, kind: &str) -> Value {
        let event = json!(fresh(kind, json!({})));
        match self.directory {
            Some(_) => event,
            None => json!({ "payload": event }),
        }
    }

    /// The event as this client gets it; none when it is not for it.
    fn form(&self, told: &Told) -> Option<Value> {
        let event = json!(&*told.event);
        let Some(wanted) = &self.directory else {
            let mut envelope = serde_json::Map::new();
            let directory = told.origin.as_ref().map_or("global".into(), |origin| {
                origin.directory.to_string_lossy().into_owned()
            });
            envelope.insert("directory".into(), json!(directory));
            if let Some(project) = told.origin.as_ref().and_then(|o| o.project.get()) {
                envelope.insert("project".into(), json!(project));
            }
            envelope.insert("payload".into(), event);
            return Some(Value::Object(envelope));
        };
        let origin = told.origin.as_ref()?;
        (origin.directory == *wanted).then_some(event)
    }

    async fn next(&mut self) -> Option<Value> {
        match self.phase {
            Phase::Over => return None,
            Phase::Begins => {
                self.phase = Phase::Runs;
                return Some(self.own("server.connected"));
            }
            Phase::Runs => {}
        }
        loop {
            let told = tokio::select! {
                biased;
                told = self.told.recv() => told,
                _ = self.heartbeat.tick() => return Some(self.own("server.heartbeat")),
                () = is_closing(&mut self.closing) => return None,
            };
            match told {
                Ok(told) => {
                    let Some(value) = self.form(&told) else {
                        continue;
                    };
                    // As in the reference, this stream ends with the agent that it told of.
                    if self.directory.is_some() && told.event.event.kind() == DISPOSED {
                        self.phase = Phase::Over;
                    }
                    return Some(value);
                }
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(
                        "[server] a client was too slow for the events: {missed} are lost, its stream is ended"
                    );
                    return None;
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

async fn is_closing(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

fn stream(feed: Feed) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures_util::stream::unfold(feed, |mut feed| async move {
        let value = feed.next().await?;
        // A JSON text has no line breaks.
        Some((Ok(Bytes::from(format!("data: {value}\n\n"))), feed))
    })
}
