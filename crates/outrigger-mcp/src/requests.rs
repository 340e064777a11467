//! Requests of a server during a call: input of the user (elicitation) and an answer of the model (sampling). The caller answers
//! them; outside calls they are not answered, so that a server cannot ask the user at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::elicitation::Elicitation;
use crate::error::McpError;

/// Maximum number of open requests of one call. Further ones are refused.
const MAX_OPEN: usize = 4;
/// JSON-RPC's code for a refusal by the user (MCP, Sampling).
const REFUSED: i64 = -1;
const INVALID_PARAMS: i64 = -32602;

/// The result of an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited {
    /// The user filled it in.
    Accept(Value),
    /// The user refused.
    Decline,
    /// There was no user, or the question was dismissed.
    Cancel,
}

/// Answers the requests that a server makes during a call.
pub trait Answering: Send + Sync {
    /// Asks the user to fill in a form.
    fn elicit<'a>(&'a self, form: &'a Elicitation) -> BoxFuture<'a, Elicited>;
    /// Asks the model; the user is asked for approval each time. `Err`: the reason.
    fn sample<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
}

/// Answers nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Answering for Nobody {
    fn elicit<'a>(&'a self, _form: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(std::future::ready(Elicited::Cancel))
    }

    fn sample<'a>(&'a self, _params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err("nobody can be asked".to_owned())))
    }
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Elicitation,
    Sampling,
}

impl Kind {
    /// Returns the kind of a method; `None` for those that only we answer.
    pub(crate) fn of(method: &str) -> Option<Self> {
        match method {
            "elicitation/create" => Some(Self::Elicitation),
            "sampling/createMessage" => Some(Self::Sampling),
            _ => None,
        }
    }

    /// Returns the reply if no call runs, or too many requests are open.
    pub(crate) fn unanswered(self) -> Reply {
        match self {
            Self::Elicitation => Ok(json!({"action": "cancel"})),
            Self::Sampling => Err((REFUSED, "the request was refused".to_owned())),
        }
    }
}

/// A result, or code and text of an error.
pub(crate) type Reply = Result<Value, (i64, String)>;

/// A request of the server on its way to the caller.
pub(crate) struct ServerRequest {
    kind: Kind,
    params: Value,
    reply: oneshot::Sender<Reply>,
    _open: OpenRequest,
}

/// The number of open requests of the server during a call. While there are any, the server is not late.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    count: AtomicUsize,
    pub(crate) progress: Notify,
}

impl OpenRequests {
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

struct OpenRequest(Arc<OpenRequests>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.progress.notify_one();
    }
}

/// Receives the requests of a server during one call.
#[derive(Clone)]
pub(crate) struct Asks {
    sender: mpsc::Sender<ServerRequest>,
}

/// The other end of [`Asks`].
pub(crate) struct Inbox {
    receiver: mpsc::Receiver<ServerRequest>,
}

pub(crate) fn channel() -> (Asks, Inbox) {
    let (sender, receiver) = mpsc::channel(MAX_OPEN);
    (Asks { sender }, Inbox { receiver })
}

impl Asks {
    /// Passes a request on; `None` if too many are open, or the call has ended.
    pub(crate) fn put(
        &self,
        kind: Kind,
        params: Value,
        open: &Arc<OpenRequests>,
    ) -> Option<oneshot::Receiver<Reply>> {
        let (reply, answer) = oneshot::channel();
        open.count.fetch_add(1, Ordering::Relaxed);
        let request = ServerRequest {
            kind,
            params,
            reply,
            _open: OpenRequest(Arc::clone(open)),
        };
        self.sender.try_send(request).ok().map(|()| answer)
    }
}

impl Inbox {
    /// Waits for a call and answers the server's requests in the meantime.
    pub(crate) async fn during(
        mut self,
        call: impl Future<Output = Result<Value, McpError>>,
        answering: &dyn Answering,
    ) -> Result<Value, McpError> {
        let mut call = std::pin::pin!(call);
        let mut waiting = FuturesUnordered::new();
        loop {
            tokio::select! {
                result = &mut call => return result,
                Some(request) = self.receiver.recv(), if waiting.len() < MAX_OPEN => {
                    waiting.push(answer(request, answering));
                }
                Some(()) = waiting.next() => {}
            }
        }
    }
}

async fn answer(request: ServerRequest, answering: &dyn Answering) {
    let reply = match request.kind {
        Kind::Elicitation => match Elicitation::read(&request.params) {
            Ok(form) => Ok(match answering.elicit(&form).await {
                Elicited::Accept(content) => json!({"action": "accept", "content": content}),
                Elicited::Decline => json!({"action": "decline"}),
                Elicited::Cancel => json!({"action": "cancel"}),
            }),
            Err(reason) => Err((INVALID_PARAMS, reason)),
        },
        Kind::Sampling => answering
            .sample(&request.params)
            .await
            .map_err(|reason| (REFUSED, reason)),
    };
    let _ = request.reply.send(reply);
}
