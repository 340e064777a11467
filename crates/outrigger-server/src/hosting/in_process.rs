//! Answering plugins, connectors and the person at this program without a port.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use http::Method;
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, SdkAnswer, SdkService};
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::rpc::{SdkRequest, SdkResponse};
use tokio::sync::broadcast;
use tower::ServiceExt as _;

use serde_json::Value;

use crate::access::marks::{FromPlugin, LocalUser, Sender};
use crate::access::own_sessions::refuse_foreign;
use crate::access::permission_escalation::refuse_wider;
use crate::access::scope::Scope;
use crate::error::{ApiError, Fault};
use crate::hosting::hub::Hub;

/// Bytes of an answer to a plugin.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Answers the SDK requests of the agent's plugins with this crate's router, which the client of the person here shares.
pub fn serve_plugins(agent: &Agent) -> LocalClient {
    let router = crate::router(agent.clone());
    agent.serve_sdk(Arc::new(InProcess {
        router: router.clone(),
        agent: agent.clone(),
        scope: Scope::of(agent),
        hub: None,
    }));
    LocalClient {
        router,
        agent: agent.clone(),
    }
}

/// The client of the person at this program: the routes of an agent without a connection. Cheap to clone.
#[derive(Clone)]
pub struct LocalClient {
    router: Router,
    agent: Agent,
}

/// A request that was not answered with what it asked for.
#[derive(Debug)]
pub struct Refusal {
    /// The stable code of the error, where it has one.
    pub code: Option<&'static str>,
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl LocalClient {
    /// The body of the answer to a request. A turn that it asks for is cancelled when the future is dropped.
    ///
    /// # Errors
    /// What the route refuses.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<Bytes, Refusal> {
        let refusal = |message: String| Refusal {
            code: None,
            message,
            hint: None,
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .extension(LocalUser)
            .body(body.map_or_else(Body::empty, Body::from))
            .map_err(|error| refusal(error.to_string()))?;
        let answer = self.router.clone().oneshot(request).await;
        let answer = answer.unwrap_or_else(|never| match never {});
        let status = answer.status();
        let fault = answer.extensions().get::<Fault>().cloned();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|error| refusal(error.to_string()))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(Refusal {
            code: fault.as_ref().map(|it| it.code),
            message: message(&serde_json::from_slice(&body).unwrap_or_default())
                .unwrap_or_else(|| status.to_string()),
            hint: fault.and_then(|it| it.hint),
        })
    }

    /// What `GET /event` publishes from now on, before it is written as text.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.agent.listen()
    }
}

/// What an error says.
fn message(error: &Value) -> Option<String> {
    let said = error
        .pointer("/data/message")
        .or_else(|| error.get("message"));
    said.and_then(Value::as_str).map(str::to_owned)
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
    let bytes = http_body_util::Limited::new(answer.into_body(), MAX_BYTES)
        .collect()
        .await
        .map_err(|error| none(error.to_string()))?
        .to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if status.is_success() {
        return Ok(value);
    }
    let why = message(&value).unwrap_or_else(|| status.to_string());
    Err((Some(status.as_u16()), why))
}

#[derive(Clone)]
struct InProcess {
    router: Router,
    agent: Agent,
    scope: Scope,
    hub: Option<Hub>,
}

impl SdkService for InProcess {
    fn call(&self, mut request: SdkRequest) -> BoxFuture<'static, SdkAnswer> {
        let door = self.clone();
        let own = refuse_foreign(&self.agent, &self.scope, &request)
            .and_then(|()| refuse_wider(&self.agent, &mut request))
            .and_then(|()| self.agent.folder().map(drop).map_err(ApiError::from));
        Box::pin(async move {
            if let Err(refused) = own {
                return match whole_or_streamed(refused.into_response()).await {
                    Ok(answer) => answer,
                    Err(message) => failure(403, &message).into(),
                };
            }
            match door.answer(request).await {
                Ok(answer) => answer,
                Err(message) => failure(400, &message).into(),
            }
        })
    }
}

impl InProcess {
    async fn answer(&self, request: SdkRequest) -> Result<SdkAnswer, String> {
        let mut builder = http::Request::builder()
            .method(request.method.as_str())
            .uri(&request.path);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let sender = request.plugin;
        let request = builder
            .extension(FromPlugin)
            .body(Body::from(request.body.unwrap_or_default()))
            .map_err(|e| format!("not a request: {e}"))?;
        let response = match self.enclose(request) {
            Ok(mut request) => {
                let sender = match &self.hub {
                    Some(hub) => self.sender_in(hub, hub.folder_of(&request), sender).await,
                    None => sender,
                };
                request.extensions_mut().insert(Sender(sender));
                match self.router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            }
            Err(refused) => refused.into_response(),
        };
        whole_or_streamed(response).await
    }

    fn enclose(&self, request: Request) -> Result<Request, ApiError> {
        let of_hub = self.hub.as_ref();
        let of_hub = of_hub.map(|hub| |named: &str| hub.resolve(Some(named)));
        let resolve = of_hub.as_ref().map(|it| it as &dyn Fn(&str) -> PathBuf);
        self.scope.enclose(request, resolve)
    }

    /// By which id the plugin that sends a request is known where the request goes: in another folder, the grants of another plugin
    /// may go by its own.
    async fn sender_in(
        &self,
        hub: &Hub,
        folder: PathBuf,
        sender: Option<String>,
    ) -> Option<String> {
        if folder == self.agent.place().directory {
            return sender;
        }
        // Where it cannot be started, the request is answered with the reason.
        let there = hub.instance(&folder).await.ok()?;
        there.agent.same_plugin(&self.agent, &sender?)
    }
}

/// The response as it goes over the channel: streams of events as they come, all else whole.
async fn whole_or_streamed(response: Response) -> Result<SdkAnswer, String> {
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    if is_stream(&response) {
        let pieces = response.into_body().into_data_stream();
        // Ours never fail; a reader would take the end for one.
        let body = pieces.filter_map(|piece| async move { piece.ok() });
        return Ok(SdkAnswer::streamed(status, headers, body.boxed()));
    }
    let body = http_body_util::Limited::new(response.into_body(), MAX_BYTES)
        .collect()
        .await;
    let body =
        body.map_err(|e| format!("the answer is larger than {MAX_BYTES} bytes or broke off: {e}"))?;
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
