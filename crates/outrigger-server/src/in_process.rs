//! Answering plugins without a port.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, SdkService};
use outrigger_protocol::rpc::{SdkRequest, SdkResponse};
use tower::ServiceExt as _;

use crate::dispatch::{FromPlugin, directory_of};
use crate::hub::Hub;

/// Most bytes of an answer to a plugin.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Answers the SDK requests of the agent's plugins with this crate's router.
pub fn serve_plugins(agent: &Agent) {
    agent.serve_sdk(Arc::new(InProcess {
        router: crate::router(agent.clone()),
        directory: None,
    }));
}

/// The same for an agent of a hub: a plugin reaches every folder there, its own if it names none.
pub(crate) fn serve_plugins_of(agent: &Agent, hub: &Hub) {
    agent.serve_sdk(Arc::new(InProcess {
        router: crate::serve_router(hub.clone()),
        directory: Some(agent.place().directory.to_string_lossy().into_owned()),
    }));
}

struct InProcess {
    router: Router,
    directory: Option<String>,
}

impl SdkService for InProcess {
    fn call(&self, request: SdkRequest) -> BoxFuture<'static, SdkResponse> {
        let (router, directory) = (self.router.clone(), self.directory.clone());
        Box::pin(async move {
            match answer(router, directory, request).await {
                Ok(response) => response,
                Err(message) => failure(400, &message),
            }
        })
    }
}

async fn answer(
    router: Router,
    directory: Option<String>,
    request: SdkRequest,
) -> Result<SdkResponse, String> {
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(&request.path);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let mut request = builder
        .extension(FromPlugin)
        .body(Body::from(request.body.unwrap_or_default()))
        .map_err(|e| format!("not a request: {e}"))?;
    if let Some(own) = directory.filter(|_| directory_of(&request).is_none())
        && let Ok(own) = http::HeaderValue::from_bytes(own.as_bytes())
    {
        request.headers_mut().insert("x-opencode-directory", own);
    }
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let body = http_body_util::Limited::new(response.into_body(), MOST_BYTES)
        .collect()
        .await;
    let body = body
        .map_err(|e| format!("the answer is larger than {MOST_BYTES} bytes or broke off: {e}"))?;
    let body = String::from_utf8(body.to_bytes().to_vec())
        .map_err(|_| "the answer is not text".to_owned())?;
    Ok(SdkResponse {
        status,
        headers,
        body,
    })
}

fn failure(status: u16, message: &str) -> SdkResponse {
    let body =
        serde_json::json!({ "name": "UnknownError", "data": { "message": message } }).to_string();
    SdkResponse {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body,
    }
}
