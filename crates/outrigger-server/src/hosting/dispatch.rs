//! The outer router: routes without a folder, and the dispatch of all others to the agent of their folder.

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use http::Method;
use outrigger_agent::Working;
use tower::ServiceExt as _;

use crate::access::guard;
use crate::access::guard::ByTicket;
use crate::access::marks::FromPlugin;
use crate::access::scope::Target;
use crate::error::ApiError;
use crate::events::stream;
use crate::hosting::hub::{Hub, Instance};
use crate::hosting::move_session::move_session;
use crate::request::MAX_BYTES;
use crate::routes::conversation::Source;
use crate::routes::settings;

/// Returns the whole API over the agents of this process.
pub fn serve_router(hub: Hub) -> Router {
    let conversations = Source::Hub(hub.clone());
    Router::new()
        .merge(crate::routes::conversation::routes().with_state(conversations))
        .merge(crate::routes::page::routes())
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
        .route(
            "/experimental/control-plane/move-session",
            post(move_session),
        )
        .route_layer(axum::middleware::from_fn(
            crate::access::plugin_routes::listed,
        ))
        .fallback(dispatch)
        .layer(axum::middleware::map_response(crate::reject::typed))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(hub)
}

async fn dispatch(State(hub): State<Hub>, request: Request) -> Response {
    let target = hub.target(&request);
    let instance = if request.extensions().get::<ByTicket>().is_some() {
        match hub.running(&target.directory).await {
            Some(instance) => instance,
            None => return guard::refused(),
        }
    } else {
        match hub.instance_for(&target).await {
            Ok(instance) => instance,
            Err(error) => return error.into_response(),
        }
    };
    if let Err(error) = instance.agent.folder() {
        return ApiError::from(error).into_response();
    }
    let (instance, _working) = match at_work(&hub, &target, instance, request.method()).await {
        Ok(it) => it,
        Err(error) => return error.into_response(),
    };
    match instance.router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Returns the agent for a request and keeps it from being replaced until the request is answered. An agent that is being
/// replaced is not used: a request that changes something waits for the new one. Requests that only read start nothing, and
/// may wait forever (`/tui/control/next`).
async fn at_work(
    hub: &Hub,
    target: &Target,
    instance: Instance,
    method: &Method,
) -> Result<(Instance, Option<Working>), ApiError> {
    if method.is_safe() {
        return Ok((instance, None));
    }
    if let Some(working) = instance.agent.begin_work() {
        return Ok((instance, Some(working)));
    }
    let instance = hub.instance_for(target).await?;
    let working = instance.agent.begin_work();
    Ok((instance, working))
}

/// After `git init`, the folder's agent still does not see a repository: its next request starts another agent.
async fn init_git(State(hub): State<Hub>, request: Request) -> Response {
    let directory = hub.folder_of(&request);
    let from_plugin = request.extensions().get::<FromPlugin>().is_some();
    let answer = dispatch(State(hub.clone()), request).await;
    let stale = match hub.running(&directory).await {
        Some(instance) => answer.status().is_success() && !instance.agent.location().git,
        None => false,
    };
    if stale {
        let _ = finish(async move { hub.dispose(&directory).await }, from_plugin).await;
    }
    answer
}

async fn dispose(State(hub): State<Hub>, request: Request) -> Json<bool> {
    let directory = hub.folder_of(&request);
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

/// Detaches the work: a plugin must not wait for its own end.
async fn finish(work: impl Future<Output = ()> + Send + 'static, from_plugin: bool) -> Json<bool> {
    if from_plugin {
        tokio::spawn(work);
    } else {
        work.await;
    }
    Json(true)
}
