//! Server-sent events: `/event` for one folder, `/global/event` for all.
//!
//! OpenCode's form: a first `server.connected`, then each event as one `data:` line, a `server.heartbeat` every ten seconds.
//! If a client is so slow that its queue exceeds the limit ([`Backlog`]), its stream is ended, so that it reconnects instead
//! of continuing with a gap; nothing waits for it (C15). A plugin's stream continues, because its client would take the end
//! for the last event: it is notified how many it missed.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::Stream;
use outrigger_agent::Agent;
use outrigger_protocol::event::BusEvent;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::access::scope::Scope;
use crate::error::ApiError;
use crate::events::backlog::{Backlog, LIMITS, Limits};
use crate::events::lines::line;
use crate::hosting::hub::{DISPOSED, Hub, Origin, Published, fresh};

/// OpenCode's interval.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Notifies a plugin that it was too slow: `{count}` events are lost.
const DROPPED: &str = "outrigger.events.dropped";

/// Returns the same routes for a single agent without a server.
pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/event", get(of_agent))
        .route("/global/event", get(all_of_agent))
}

/// Handles `GET /event`.
pub(crate) async fn of_folder(
    State(hub): State<Hub>,
    request: Request,
) -> Result<Response, ApiError> {
    let target = hub.target(&request);
    // Its first event comes after `server.connected`.
    let feed = Feed::of_hub(&hub, Some(target.directory.clone()), target.scope.clone());
    hub.instance_for(&target).await?;
    Ok(answer(feed))
}

/// Handles `GET /global/event`: events of all folders; for a plugin, those of its own project.
pub(crate) async fn of_all(State(hub): State<Hub>, request: Request) -> Response {
    answer(Feed::of_hub(&hub, None, scope_of(&request)))
}

async fn of_agent(State(agent): State<Agent>, request: Request) -> Response {
    let directory = agent.location().directory.clone();
    answer(Feed::of_agent(&agent, Some(directory), scope_of(&request)))
}

async fn all_of_agent(State(agent): State<Agent>, request: Request) -> Response {
    answer(Feed::of_agent(&agent, None, scope_of(&request)))
}

/// Returns the scope of a plugin's request.
fn scope_of(request: &Request) -> Option<Scope> {
    request.extensions().get::<Scope>().cloned()
}

fn answer(feed: Feed) -> Response {
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ];
    (headers, Body::from_stream(stream(feed, LIMITS))).into_response()
}

struct Feed {
    source: Source,
    /// `None` if the stream ends only with its agent.
    closing: Option<watch::Receiver<bool>>,
    heartbeat: Interval,
    /// `None`: every folder, each event in an envelope.
    directory: Option<PathBuf>,
    /// The folders whose events a plugin gets.
    scope: Option<Scope>,
    phase: Phase,
}

enum Phase {
    Begins,
    Runs,
    Over,
}

enum Source {
    Hub(broadcast::Receiver<Published>),
    Agent(broadcast::Receiver<Arc<BusEvent>>, Arc<Origin>),
}

impl Source {
    async fn recv(&mut self) -> Result<Published, RecvError> {
        match self {
            Self::Hub(events) => events.recv().await,
            Self::Agent(events, origin) => {
                let event = events.recv().await?;
                Ok(Published::new(Some(Arc::clone(origin)), event))
            }
        }
    }
}

impl Feed {
    fn of_hub(hub: &Hub, directory: Option<PathBuf>, scope: Option<Scope>) -> Self {
        Self {
            closing: Some(hub.closing()),
            ..Self::new(Source::Hub(hub.listen()), directory, scope)
        }
    }

    fn of_agent(agent: &Agent, directory: Option<PathBuf>, scope: Option<Scope>) -> Self {
        let origin = Arc::new(Origin {
            directory: agent.location().directory.clone(),
            project: OnceLock::from(agent.project().id.clone()),
        });
        Self::new(Source::Agent(agent.listen(), origin), directory, scope)
    }

    fn new(source: Source, directory: Option<PathBuf>, scope: Option<Scope>) -> Self {
        let mut heartbeat = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source,
            closing: None,
            heartbeat,
            directory,
            scope,
            phase: Phase::Begins,
        }
    }

    /// Creates an event of the stream itself.
    fn own(&self, kind: &str, properties: Value) -> Bytes {
        let event = fresh(kind, properties);
        match self.directory {
            Some(_) => line(&event),
            None => line(&json!({ "payload": event })),
        }
    }

    /// Returns the event in this client's form; `None` if it is not for this client.
    fn form(&self, published: &Published) -> Option<Bytes> {
        if let (Some(scope), Some(origin)) = (&self.scope, &published.origin)
            && !scope.holds(&origin.directory)
        {
            return None;
        }
        let Some(wanted) = &self.directory else {
            let origin = published.origin.as_deref();
            let directory = origin.map(|origin| origin.directory.as_path());
            let project = origin.and_then(|origin| origin.project.get());
            let lines = &published.lines;
            return Some(lines.in_envelope(directory, project, &published.event));
        };
        let origin = published.origin.as_ref()?;
        (origin.directory == *wanted).then(|| published.lines.alone(&published.event))
    }

    async fn next(&mut self) -> Option<Bytes> {
        match self.phase {
            Phase::Over => return None,
            Phase::Begins => {
                self.phase = Phase::Runs;
                return Some(self.own("server.connected", json!({})));
            }
            Phase::Runs => {}
        }
        loop {
            let next = tokio::select! {
                biased;
                next = self.source.recv() => next,
                _ = self.heartbeat.tick() => return Some(self.own("server.heartbeat", json!({}))),
                () = is_closing(&mut self.closing) => return None,
            };
            match next {
                Ok(published) => {
                    let Some(line) = self.form(&published) else {
                        continue;
                    };
                    // As in OpenCode, this stream ends with its agent.
                    if self.directory.is_some() && published.event.event.kind() == DISPOSED {
                        self.phase = Phase::Over;
                    }
                    return Some(line);
                }
                Err(RecvError::Lagged(missed)) if self.scope.is_some() => {
                    return Some(self.own(DROPPED, json!({ "count": missed })));
                }
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(
                        "[server] a client read its events too slowly: {missed} are lost, its stream is closed"
                    );
                    return None;
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

async fn is_closing(closing: &mut Option<watch::Receiver<bool>>) {
    match closing {
        Some(closing) => drop(closing.wait_for(|closing| *closing).await),
        None => std::future::pending().await,
    }
}

/// The queue that a client reads, and the task that fills it; the task ends with the stream.
struct Reader {
    backlog: Arc<Backlog>,
    filled: JoinHandle<()>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.filled.abort();
    }
}

fn stream(feed: Feed, limits: Limits) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let backlog = Arc::new(Backlog::new(limits));
    let filled = tokio::spawn(fill(feed, Arc::clone(&backlog)));
    let reader = Reader { backlog, filled };
    futures_util::stream::unfold(reader, |reader| async move {
        let piece = reader.backlog.next().await?;
        Some((Ok(piece), reader))
    })
}

/// Takes events as they are published, whether the client reads or not: the bus would keep them for all clients otherwise.
async fn fill(mut feed: Feed, backlog: Arc<Backlog>) {
    let mut missed = 0_u64;
    while let Some(line) = feed.next().await {
        if backlog.has_room() {
            if missed > 0 {
                backlog.push(feed.own(DROPPED, json!({ "count": missed })));
                missed = 0;
            }
            backlog.push(line);
        } else if feed.scope.is_some() {
            missed += 1;
        } else {
            tracing::warn!("[server] a client does not read its events: its stream is closed");
            return backlog.cut();
        }
    }
    backlog.end();
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    /// A client that does not read blocks nothing: it loses the oldest events. A plugin is notified how many and continues; a
    /// client has its stream ended.
    #[tokio::test]
    async fn one_that_falls_behind_is_notified_or_ended() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().canonicalize().unwrap();
        let origin = Arc::new(Origin {
            directory: directory.clone(),
            project: OnceLock::new(),
        });
        for (scope, want) in [
            (
                Some(Scope::only(&directory)),
                "server.connected outrigger.events.dropped 6 | 6 7 8 9",
            ),
            (None, "server.connected"),
        ] {
            let (sender, events) = broadcast::channel(4);
            let source = Source::Agent(events, Arc::clone(&origin));
            let mut feed = Feed::new(source, Some(directory.clone()), scope);
            let mut seen = vec![value(&feed.next().await.unwrap())["type"].clone()];
            for n in 0..10 {
                sender
                    .send(Arc::new(fresh("x", json!({ "n": n }))))
                    .unwrap();
            }
            drop(sender);
            while let Some(event) = feed.next().await {
                let event = value(&event);
                let properties = &event["properties"];
                if event["type"] == DROPPED {
                    seen.extend([
                        event["type"].clone(),
                        properties["count"].clone(),
                        json!("|"),
                    ]);
                } else {
                    seen.push(properties["n"].clone());
                }
            }
            let seen: Vec<String> = seen
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                })
                .collect();
            assert_eq!(seen.join(" "), want);
        }
    }

    fn value(line: &Bytes) -> Value {
        let text = line.strip_prefix(b"data: ").unwrap();
        serde_json::from_slice(text).unwrap()
    }

    /// Takes the queued events as values.
    async fn waiting(
        read: &mut (impl Stream<Item = Result<Bytes, Infallible>> + Unpin),
    ) -> Vec<Value> {
        let mut text = Vec::new();
        while let Some(Some(piece)) = read.next().now_or_never() {
            text.extend_from_slice(&piece.unwrap());
            tokio::task::yield_now().await;
        }
        let text = String::from_utf8(text).unwrap();
        let events = text.split_terminator("\n\n");
        events
            .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
            .collect()
    }

    /// A client that does not read keeps no event alive, however large: a client has its stream ended, a plugin is notified
    /// what it missed. Memory must not grow.
    #[tokio::test]
    async fn who_does_not_read_keeps_nothing() {
        let limits = Limits {
            reading: 10_000,
            ..LIMITS
        };
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().canonicalize().unwrap();
        let origin = Arc::new(Origin {
            directory: directory.clone(),
            project: OnceLock::new(),
        });
        for scope in [None, Some(Scope::only(&directory))] {
            let (sender, events) = broadcast::channel(64);
            let source = Source::Agent(events, Arc::clone(&origin));
            let plugin = scope.is_some();
            let mut read = Box::pin(stream(
                Feed::new(source, Some(directory.clone()), scope),
                limits,
            ));
            let tell = |n: usize| {
                let event = fresh("x", json!({ "n": n, "text": "y".repeat(1_000) }));
                let event = Arc::new(event);
                sender.send(Arc::clone(&event)).unwrap();
                Arc::downgrade(&event)
            };
            let events: Vec<_> = (0..20).map(tell).collect();
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(events.iter().all(|event| event.upgrade().is_none()));
            if !plugin {
                assert!(read.next().await.is_none(), "the stream has ended");
                continue;
            }
            let seen = waiting(&mut read).await;
            assert_eq!(seen.len(), 11, "the first event, and ten of them");
            tell(20);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            let seen = waiting(&mut read).await;
            assert_eq!(seen[0]["type"], DROPPED);
            assert_eq!(seen[0]["properties"]["count"], 10);
            assert_eq!(seen[1]["properties"]["n"], 20);
        }
    }
}
