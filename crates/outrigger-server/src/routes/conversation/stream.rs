//! Streams of conversations: the log after an event, then new events, without end.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path as Named, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use outrigger_agent::Agent;
use outrigger_conversation::{Feed, Follow, FollowOptions};
use outrigger_protocol::id::SessionId;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::entries::form;
use super::source::{Source, feed_of_agent};
use crate::access::scope::Scope;
use crate::error::ApiError;

#[derive(Deserialize)]
pub(super) struct Begin {
    after: Option<i64>,
    merge: Option<bool>,
}

pub(super) async fn of_one(
    State(source): State<Source>,
    Named(id): Named<SessionId>,
    scope: Option<Extension<Scope>>,
    Query(begin): Query<Begin>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    source.find(&id, scope.as_ref())?;
    follow(&source, Some(id), scope, &begin, &headers).await
}

pub(super) async fn of_all(
    State(source): State<Source>,
    scope: Option<Extension<Scope>>,
    Query(begin): Query<Begin>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    follow(&source, None, scope, &begin, &headers).await
}

async fn follow(
    source: &Source,
    only: Option<SessionId>,
    scope: Option<Extension<Scope>>,
    begin: &Begin,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // A reconnecting browser keeps the URL and sends its last event.
    let last = headers
        .get("last-event-id")
        .and_then(|text| text.to_str().ok()?.parse().ok());
    let allowed = scope.map(|Extension(scope)| {
        let holds = move |folder: &Path| scope.holds(folder);
        Arc::new(holds) as Arc<dyn Fn(&Path) -> bool + Send + Sync>
    });
    let wanted = FollowOptions {
        only,
        form: form(begin.merge),
        after: last.or(begin.after),
        allowed,
    };
    let (feed, forwards, closing) = match source {
        Source::Hub(hub) => (hub.feed()?, None, Some(hub.closing())),
        Source::Agent(agent, _) => {
            let feed = feed_of_agent(agent);
            let forwards = Forwards(forward(agent, &feed));
            (feed, Some(forwards), None)
        }
    };
    let stream = Stream {
        follow: Follow::new(feed, wanted).await?,
        closing,
        _forwards: forwards,
    };
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-content-type-options", "nosniff"),
    ];
    let pieces = futures_util::stream::unfold(stream, Stream::next);
    Ok((headers, Body::from_stream(pieces)).into_response())
}

struct Stream {
    follow: Follow,
    /// `None` if the stream ends only with its agent.
    closing: Option<watch::Receiver<bool>>,
    _forwards: Option<Forwards>,
}

impl Stream {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let closing = async {
            match &mut self.closing {
                Some(closing) => drop(closing.wait_for(|closing| *closing).await),
                None => std::future::pending().await,
            }
        };
        let next = tokio::select! {
            next = self.follow.next() => next,
            () = closing => return None,
        };
        match next {
            Ok(bytes) => Some((Ok(bytes), self)),
            Err(error) => {
                tracing::error!("[server] a stream of conversations ends: {error}");
                None
            }
        }
    }
}

/// Forwards an agent's events to a feed while it has a subscriber.
struct Forwards(JoinHandle<()>);

impl Drop for Forwards {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn forward(agent: &Agent, feed: &Feed) -> JoinHandle<()> {
    let (mut events, feed) = (agent.listen(), feed.clone());
    tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => feed.heard(&event),
                // Missed events that are stored are read from the store.
                Err(RecvError::Lagged(_)) => feed.wake(),
                Err(RecvError::Closed) => return,
            }
        }
    })
}
