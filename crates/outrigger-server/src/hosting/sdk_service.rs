//! Answers the SDK requests of plugins with the router, without a port, and limits each plugin to its own project.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use outrigger_agent::{Agent, SdkAnswer, SdkService};
use outrigger_protocol::rpc::{SdkRequest, SdkResponse};
use tower::ServiceExt as _;

use crate::access::marks::{FromPlugin, Sender};
use crate::access::permission_escalation::refuse_wider;
use crate::access::plugin_storage::PluginStorage;
use crate::access::project_sessions::refuse_foreign;
use crate::access::scope::{Scope, Target};
use crate::error::ApiError;
use crate::hosting::hub::Hub;
use crate::hosting::local_client::LocalClient;

/// Maximum bytes of a response to a plugin.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Answers the SDK requests of the agent's plugins with this crate's router, which the local client shares.
pub fn serve_plugins(agent: &Agent) -> LocalClient {
    let router = crate::router(agent.clone());
    agent.serve_sdk(Arc::new(InProcess {
        router: router.clone(),
        agent: agent.clone(),
        scope: Scope::of(agent),
        storage: Arc::default(),
        hub: None,
    }));
    LocalClient {
        router,
        agent: agent.clone(),
    }
}

/// Like [`serve_plugins`], for an agent of a hub: a plugin may access all folders of its own project.
pub(crate) fn serve_plugins_of(agent: &Agent, hub: &Hub) {
    agent.serve_sdk(Arc::new(InProcess {
        router: crate::serve_router(hub.clone()),
        agent: agent.clone(),
        scope: Scope::of(agent),
        storage: Arc::default(),
        hub: Some(hub.clone()),
    }));
}

#[derive(Clone)]
struct InProcess {
    router: Router,
    agent: Agent,
    scope: Scope,
    storage: Arc<PluginStorage>,
    hub: Option<Hub>,
}

impl SdkService for InProcess {
    fn admit<'a>(&'a self, request: &'a SdkRequest) -> BoxFuture<'a, Result<(), SdkAnswer>> {
        Box::pin(async move {
            match self.storage.count(&self.agent, request).await {
                Ok(()) => Ok(()),
                Err(refused) => Err(refusal(refused).await),
            }
        })
    }

    fn call(&self, mut request: SdkRequest) -> BoxFuture<'static, SdkAnswer> {
        let door = self.clone();
        let own = refuse_foreign(&self.agent, &self.scope, &request)
            .and_then(|()| refuse_wider(&self.agent, &mut request))
            .and_then(|()| self.agent.folder().map(drop).map_err(ApiError::from));
        Box::pin(async move {
            if let Err(refused) = own {
                return refusal(refused).await;
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
                    Some(hub) => self.sender_in(hub, hub.target(&request), sender).await,
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
        let of_hub = self
            .hub
            .as_ref()
            .map(|hub| |named: &str| hub.resolve(Some(named)));
        let resolve = of_hub.as_ref().map(|it| it as &dyn Fn(&str) -> PathBuf);
        self.scope.enclose(request, resolve)
    }

    /// Maps the sender's plugin id to its id in the target folder, where the same id may belong to another plugin with other
    /// grants.
    async fn sender_in(&self, hub: &Hub, target: Target, sender: Option<String>) -> Option<String> {
        if target.directory == self.agent.location().directory {
            return sender;
        }
        // If it cannot be started, the request is answered with the reason.
        let there = hub.instance_for(&target).await.ok()?;
        there.agent.same_plugin(&self.agent, &sender?)
    }
}

async fn refusal(refused: ApiError) -> SdkAnswer {
    match whole_or_streamed(refused.into_response()).await {
        Ok(answer) => answer,
        Err(message) => failure(403, &message).into(),
    }
}

/// Returns the response in the channel's form: event streams piece by piece, everything else whole.
async fn whole_or_streamed(response: Response) -> Result<SdkAnswer, String> {
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    if is_stream(&response) {
        let pieces = response.into_body().into_data_stream();
        // Our streams do not fail; a reader would take an error for the end.
        let body = pieces.filter_map(|piece| async move { piece.ok() });
        return Ok(SdkAnswer::streamed(status, headers, body.boxed()));
    }
    let body = http_body_util::Limited::new(response.into_body(), MAX_BYTES)
        .collect()
        .await
        .map_err(|e| format!("the answer is larger than {MAX_BYTES} bytes or broke off: {e}"))?;
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
