//! Requests of the process: each in a separate task, limited in number and in the bytes that wait for the process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outrigger_protocol::hook::Block;
use outrigger_protocol::rpc::{
    Message, RpcError, SdkChunk, SdkRequest, SdkResponse, host, process,
};
use outrigger_sandbox::process_time::timeout;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Outgoing, Peer, lock, rpc_error};
use crate::codec::encode;
use crate::error::JsError;
use crate::host_handler::Refused;
use crate::sdk::{Credit, SdkBody};

/// Additional limit in bytes for refusals; a process that keeps requesting without reading them is killed.
const MAX_REFUSALS: usize = 16 << 20;
/// Maximum number of concurrent requests of a process; the next one is refused.
pub(super) const MAX_REVERSE: usize = 1024;
/// Maximum number of open streamed answers: unread ones must not use up what other requests need.
pub(super) const MAX_STREAMS: usize = 256;
/// An answer of at most this many bytes is always sent.
const REFUSAL: usize = 1024;
pub(super) const OVERLOADED: i64 = -32001;
const UNKNOWN_METHOD: i64 = -32601;
const BAD_PARAMS: i64 = -32602;

impl Peer {
    /// Answers a request of the process in a separate task, so that the reader never waits for it.
    pub(super) fn request(
        self: &Arc<Self>,
        method: &str,
        id: u64,
        params: Value,
    ) -> Result<(), JsError> {
        self.has_room(self.backlog + MAX_REFUSALS)?;
        let peer = Arc::clone(self);
        let method = method.to_owned();
        let mut open = lock(&self.open);
        if open.closed {
            return Ok(());
        }
        if open.reverse.contains_key(&id) {
            return Err(JsError::BadFrame {
                reason: format!("request {id} has the number of one that is in work"),
            });
        }
        if open.reverse.len() >= MAX_REVERSE {
            drop(open);
            self.answer(
                id,
                Err(rpc_error(
                    OVERLOADED,
                    format!("more than {MAX_REVERSE} requests are in flight"),
                )),
            );
            return Ok(());
        }
        let task = tokio::spawn(async move {
            let mut body = None;
            let answer = peer.serve(&method, params, &mut body).await;
            match body.filter(|_| answer.is_ok()) {
                Some(body) => peer.send_streamed(id, answer, body).await,
                None => {
                    lock(&peer.open).reverse.remove(&id);
                    peer.answer(id, answer);
                }
            }
        });
        open.reverse.insert(id, task.abort_handle());
        Ok(())
    }

    /// Sends the head, then the body as far as the process accepts it. If the process cancels, it stops there.
    async fn send_streamed(&self, id: u64, head: Result<Value, RpcError>, body: SdkBody) {
        let credit = Arc::new(Credit::default());
        {
            let mut open = lock(&self.open);
            if open.credits.len() >= MAX_STREAMS {
                open.reverse.remove(&id);
                drop(open);
                let refusal = format!("more than {MAX_STREAMS} streams are open: close some");
                return self.answer(id, Err(rpc_error(OVERLOADED, refusal)));
            }
            // Before the head is sent: the first credit may arrive right after it.
            open.credits.insert(id, Arc::clone(&credit));
        }
        self.answer(id, head);
        let sent = crate::sdk::pump(id, body, &credit, |chunk| {
            self.notify(host::SDK_CHUNK, &chunk)
        });
        if let Err(error) = sent.await {
            // An event over the frame limit, or a process that reads nothing: it is notified once it reads again.
            let chunk = SdkChunk::broken(id, error.to_string());
            let frame = encode(&Outgoing {
                jsonrpc: "2.0",
                id: None,
                method: host::SDK_CHUNK,
                params: &chunk,
            });
            let _ = frame.and_then(|frame| self.enqueue(frame));
        }
        let mut open = lock(&self.open);
        open.credits.remove(&id);
        open.reverse.remove(&id);
    }

    async fn serve(
        &self,
        method: &str,
        params: Value,
        body: &mut Option<SdkBody>,
    ) -> Result<Value, RpcError> {
        match method {
            process::SDK_REQUEST => {
                let request: SdkRequest = arguments(params)?;
                let deadline = self.handler.sdk_deadline(&request);
                let late = late(&request, deadline);
                let answer = timeout(deadline, self.handler.sdk(request))
                    .await
                    .unwrap_or_else(|_| late.into());
                *body = answer.body;
                serde_json::to_value(answer.response)
                    .map_err(|error| rpc_error(-32603, error.to_string()))
            }
            process::FILE_OPEN => self.open_file(arguments(params)?).await,
            process::TOOL_ASK => match self.handler.ask(arguments(params)?).await {
                Ok(()) => Ok(json!({})),
                Err(refusal) => Err(rpc_error(-32000, refusal)),
            },
            process::POINT_CALL => {
                let called = self.handler.call_point(arguments(params)?).await;
                called
                    .map_err(refused)
                    .and_then(|called| serde_json::to_value(called).map_err(internal))
            }
            process::EVENT_EMIT => {
                let published = self.handler.emit(arguments(params)?).await;
                published.map(|()| json!({})).map_err(refused)
            }
            process::AUTH_GET => self
                .handler
                .credential(arguments(params)?)
                .await
                .map_err(|refusal| rpc_error(-32000, refusal)),
            _ => Err(rpc_error(
                UNKNOWN_METHOD,
                format!("this host knows no method {method}"),
            )),
        }
    }

    fn answer(&self, id: u64, answer: Result<Value, RpcError>) {
        let message = |answer: Result<Value, RpcError>| {
            let (result, error) = match answer {
                Ok(result) => (Some(result), None),
                Err(error) => (None, Some(error)),
            };
            Message {
                jsonrpc: "2.0".to_owned(),
                id: Some(id),
                result,
                error,
                ..Message::default()
            }
        };
        let fits = |frame: Bytes| match self.has_room(self.backlog) {
            // Small frames are refusals.
            Err(error) if frame.len() > REFUSAL => Err(error),
            _ => Ok(frame),
        };
        let refusal =
            |code, error: &JsError| encode(&message(Err(rpc_error(code, error.to_string()))));
        let frame = match encode(&message(answer)).and_then(fits) {
            Err(error @ JsError::FrameTooLarge { .. }) => refusal(-32603, &error),
            Err(error @ JsError::Backlog { .. }) => refusal(OVERLOADED, &error),
            frame => frame,
        };
        if let Err(error) = frame.and_then(|frame| self.enqueue(frame)) {
            tracing::debug!("[plugin:{}] an answer was not sent: {error}", self.name);
        }
    }
}

/// Returns the answer to a request that was not answered in time.
fn late(request: &SdkRequest, deadline: Duration) -> SdkResponse {
    let SdkRequest { method, path, .. } = request;
    let message = format!(
        "{method} {path} was not answered within {} ms",
        deadline.as_millis()
    );
    SdkResponse {
        status: 504,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: json!({ "name": "Timeout", "data": { "message": message } }).to_string(),
        stream: false,
    }
}

fn refused(refused: Refused) -> RpcError {
    let refusal = refused.block.map(|block| {
        let Block { code, details, .. } = *block;
        json!({ "code": code, "details": details })
    });
    let data = match refusal {
        Some(refusal) => json!({ "code": refused.code, "refusal": refusal }),
        None => json!({ "code": refused.code }),
    };
    RpcError {
        data: Some(data),
        ..rpc_error(-32000, refused.message)
    }
}

fn internal(error: serde_json::Error) -> RpcError {
    rpc_error(-32603, error.to_string())
}

fn arguments<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| rpc_error(BAD_PARAMS, error.to_string()))
}
