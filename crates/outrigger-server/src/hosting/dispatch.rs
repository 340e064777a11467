//! The outer router: routes of no folder, and the way of all others to the agent of the folder that they name.

use std::path::Path;

use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use http::Method;
use outrigger_agent::{AgentError, Working};
use tower::ServiceExt as _;

use crate::access::guard;
use crate::access::guard::ByTicket;
use crate::access::scope::folder_of;
use crate::error::ApiError;
use crate::events::stream;
use crate::hosting::hub::{Hub, Instance};
use crate::routes::settings;

/// Most bytes of a request: a prompt may bring pictures.
pub(crate) const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Marks a request that comes over a plugin's channel: its sender may be what the addressed session waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromPlugin;

/// Marks a request of the person at this program. Only [`crate::LocalClient`] sets it: nothing of a request that comes over a
/// channel or a connection can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalUser;

/// Which plugin sends a request that is marked with [`FromPlugin`], where that is certain.
#[derive(Clone, Debug)]
pub(crate) struct Sender(pub(crate) Option<String>);

/// The whole API over the agents of this process.
pub fn serve_router(hub: Hub) -> Router {
    Router::new()
        .route("/global/health", get(crate::routes::general::health))
        .route("/doc", get(crate::doc::document))
        .route("/global/event", get(stream::of_all))
        .route("/global/dispose", post(dispose_all))
        .route(
            "/global/config",
            get(settings::global).patch(settings::change_global),
        )
        .route("/global/upgrade", post(settings::upgrade))
        .route("/config", patch(settings::change).fallback(dispatch))
        .route("/event", get(stream::of_folder))
        .route("/instance/dispose", post(dispose))
        .route("/project/git/init", post(init_git))
        .route_layer(axum::middleware::from_fn(
            crate::access::plugin_routes::listed,
        ))
        .fallback(dispatch)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(hub)
}

/// Folder that a request names: `directory` of the query, else the header, which the SDK sends percent-encoded; in the
/// newer form `location[directory]`.
pub(crate) fn directory_of(request: &Request) -> Option<String> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri()).ok();
    let named = query.and_then(|Query(pairs)| {
        let of = |name: &str| {
            let found = pairs
                .iter()
                .find(|(key, value)| key == name && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        of("directory").or_else(|| of("location[directory]"))
    });
    named.or_else(|| {
        let header = request.headers().get("x-opencode-directory")?;
        let header = std::str::from_utf8(header.as_bytes()).ok()?;
        (!header.is_empty()).then(|| decoded(header))
    })
}

/// Percent-encoding undone; as it stands where it is none.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            }
            _ => return text.to_owned(),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

async fn dispatch(State(hub): State<Hub>, request: Request) -> Response {
    let directory = folder_of(&hub, &request);
    let instance = if request.extensions().get::<ByTicket>().is_some() {
        match hub.running(&directory).await {
            Some(instance) => instance,
            None => return guard::refused(),
        }
    } else {
        match hub.instance(&directory).await {
            Ok(instance) => instance,
            Err(error) => return ApiError::from(error).into_response(),
        }
    };
    if let Err(error) = instance.agent.folder() {
        return ApiError::from(error).into_response();
    }
    let (instance, _working) = match at_work(&hub, &directory, instance, request.method()).await {
        Ok(it) => it,
        Err(error) => return ApiError::from(error).into_response(),
    };
    match instance.router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The agent that a request is for, kept from being replaced until it is answered. One that is being replaced is left alone:
/// whoever asks for something waits for the new one. What only reads begins nothing, and may wait for ever
/// (`/tui/control/next`).
async fn at_work(
    hub: &Hub,
    directory: &Path,
    instance: Instance,
    method: &Method,
) -> Result<(Instance, Option<Working>), AgentError> {
    if method.is_safe() {
        return Ok((instance, None));
    }
    if let Some(working) = instance.agent.begin_work() {
        return Ok((instance, Some(working)));
    }
    let instance = hub.instance(directory).await?;
    let working = instance.agent.begin_work();
    Ok((instance, working))
}

/// The agent of a folder that has become a repository still takes it for none: its next request starts another.
async fn init_git(State(hub): State<Hub>, request: Request) -> Response {
    let directory = hub.resolve(directory_of(&request).as_deref());
    let from_plugin = request.extensions().get::<FromPlugin>().is_some();
    let answer = dispatch(State(hub.clone()), request).await;
    let stale = match hub.running(&directory).await {
        Some(instance) => answer.status().is_success() && !instance.agent.place().git,
        None => false,
    };
    if stale {
        let _ = finish(async move { hub.dispose(&directory).await }, from_plugin).await;
    }
    answer
}

async fn dispose(State(hub): State<Hub>, request: Request) -> Json<bool> {
    let directory = folder_of(&hub, &request);
    let from_plugin = request.extensions().get::<FromPlugin>().is_some();
    let work = async move { hub.dispose(&directory).await };
    finish(work, from_plugin).await
}

async fn dispose_all(State(hub): State<Hub>, request: Request) -> Result<Json<bool>, ApiError> {
    if request.extensions().get::<FromPlugin>().is_some() {
        return Err(ApiError::forbidden(
            "a plugin cannot dispose of the agents of other projects: POST /instance/dispose ends its own",
        ));
    }
    Ok(finish(async move { hub.dispose_all().await }, false).await)
}

/// A plugin does not wait for its own end.
async fn finish(work: impl Future<Output = ()> + Send + 'static, from_plugin: bool) -> Json<bool> {
    if from_plugin {
        tokio::spawn(work);
    } else {
        work.await;
    }
    Json(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn the_folder_that_a_request_names() {
        for (uri, header, named) in [
            ("/session", None, None),
            ("/session?directory=%2Fa%20b", None, Some("/a b")),
            ("/session?directory=/q", Some("%2Fh"), Some("/q")),
            ("/session?directory=", Some("%2Fh%2Fx%20y"), Some("/h/x y")),
            ("/api/x?location[directory]=/l", Some("/h"), Some("/l")),
            ("/session", Some("/plain"), Some("/plain")),
            ("/session", Some("/100%"), Some("/100%")),
            ("/session", Some("/%zz"), Some("/%zz")),
            ("/session", Some(""), None),
        ] {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header("x-opencode-directory", header);
            }
            let request = request.body(Body::empty()).unwrap();
            assert_eq!(directory_of(&request).as_deref(), named, "{uri} {header:?}");
        }
    }
}
