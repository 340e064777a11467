//! Answering plugins without a port.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, SdkAnswer, SdkService};
use outrigger_protocol::rpc::{SdkRequest, SdkResponse};
use tower::ServiceExt as _;

use serde_json::Value;

use crate::dispatch::{FromPlugin, Sender};
use crate::error::ApiError;
use crate::hub::Hub;
use crate::own_sessions::refuse_foreign;
use crate::scope::Scope;
use crate::wider::refuse_wider;

/// Most bytes of an answer to a plugin.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Answers the SDK requests of the agent's plugins with this crate's router.
pub fn serve_plugins(agent: &Agent) {
    agent.serve_sdk(Arc::new(InProcess {
        router: crate::router(agent.clone()),
        agent: agent.clone(),
        scope: Scope::of(agent),
        hub: None,
    }));
}

/// The same for an agent of a hub: a plugin reaches its own project there, in all of its folders.
pub(crate) fn serve_plugins_of(agent: &Agent, hub: &Hub) {
    agent.serve_sdk(Arc::new(InProcess {
        router: crate::serve_router(hub.clone()),
        agent: agent.clone(),
        scope: Scope::of(agent),
        hub: Some(hub.clone()),
    }));
}

/// Calls a route of a hub's agents in process, as the user: for connectors of this program, never for plugins.
///
/// # Errors
/// The status of a refusal with its message; why there was no whole answer.
pub async fn call(
    hub: Hub,
    method: &'static str,
    path: String,
    body: Option<Value>,
) -> Result<Value, (Option<u16>, String)> {
    let none = |why: String| (None, why);
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| none(error.to_string()))?;
    let answer = crate::serve_router(hub).oneshot(request).await;
    let answer = answer.unwrap_or_else(|never| match never {});
    let status = answer.status();
    let bytes = http_body_util::Limited::new(answer.into_body(), MOST_BYTES)
        .collect()
        .await
        .map_err(|error| none(error.to_string()))?
        .to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() {
        return Ok(value);
    }
    let said = value
        .pointer("/data/message")
        .or_else(|| value.get("message"));
    let said = said.and_then(Value::as_str);
    let why = said.map_or_else(|| status.to_string(), str::to_owned);
    Err((Some(status.as_u16()), why))
}

struct InProcess {
    router: Router,
    agent: Agent,
    scope: Scope,
    hub: Option<Hub>,
}

impl SdkService for InProcess {
    fn call(&self, request: SdkRequest) -> BoxFuture<'static, SdkAnswer> {
        let (router, scope, hub) = (self.router.clone(), self.scope.clone(), self.hub.clone());
        let own = refuse_foreign(&self.agent, &scope, &request)
            .and_then(|()| refuse_wider(&self.agent, &request))
            .and_then(|()| self.agent.folder().map(drop).map_err(ApiError::from));
        Box::pin(async move {
            if let Err(refused) = own {
                return match told(refused.into_response()).await {
                    Ok(answer) => answer,
                    Err(message) => failure(403, &message).into(),
                };
            }
            match answer(router, &scope, hub.as_ref(), request).await {
                Ok(answer) => answer,
                Err(message) => failure(400, &message).into(),
            }
        })
    }
}

async fn answer(
    router: Router,
    scope: &Scope,
    hub: Option<&Hub>,
    request: SdkRequest,
) -> Result<SdkAnswer, String> {
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.path);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let request = builder
        .extension(FromPlugin)
        .extension(Sender(request.plugin))
        .body(Body::from(request.body.unwrap_or_default()))
        .map_err(|e| format!("not a request: {e}"))?;
    let response = match scope.enclose(request, hub) {
        Ok(request) => match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        },
        Err(refused) => refused.into_response(),
    };
    told(response).await
}

/// The response as it goes over the channel: streams of events as they come, all else whole.
async fn told(response: Response) -> Result<SdkAnswer, String> {
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    if is_stream(&response) {
        let pieces = response.into_body().into_data_stream();
        // Ours never fail; whoever reads would take the end for one.
        let body = pieces.filter_map(|piece| async move { piece.ok() });
        return Ok(SdkAnswer::streamed(status, headers, body.boxed()));
    }
    let body = http_body_util::Limited::new(response.into_body(), MOST_BYTES)
        .collect()
        .await;
    let body = body
        .map_err(|e| format!("the answer is larger than {MOST_BYTES} bytes or broke off: {e}"))?;
    let body = String::from_utf8(body.to_bytes().to_vec())
        .map_err(|_| "the answer is not text".to_owned())?;
    let whole = SdkResponse {
        status,
        headers,
        body,
        stream: false,
    };
    Ok(whole.into())
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn failure(status: u16, message: &str) -> SdkResponse {
    let body =
        serde_json::json!({ "name": "UnknownError", "data": { "message": message } }).to_string();
    SdkResponse {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body,
        stream: false,
    }
}
