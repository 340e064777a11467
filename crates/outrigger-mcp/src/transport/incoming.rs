//! What all transports do with a server's own messages: reports of progress, changed lists, log lines, and requests.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::requests::Kind;
use crate::transport::pending::Pending;
use crate::transport::remote::Remote;
use crate::wire::{self, Id, Incoming};

/// Characters of a log line that are kept.
const MAX_LOGGED: usize = 1_000;

/// Takes what a remote server sent. `during`: the call in whose answer it came; `send` posts the answer to a request.
pub(crate) fn take(
    pending: &Pending,
    remote: &Remote,
    message: Incoming,
    during: Option<Id>,
    send: impl FnOnce(String) + Send + 'static,
) {
    match message {
        Incoming::Answer { id, result } => {
            pending.answer(id, result);
        }
        Incoming::Request { id, method, params } => match at_once(pending, &id, &method) {
            Some(answer) => send(answer),
            None => {
                let answer = later(pending, during, (id, &method, params));
                tokio::spawn(async move { send(answer.await) });
            }
        },
        Incoming::Notice { method, params } => {
            let hide = |text| remote.hide(text);
            notice(pending, &remote.server, (&method, &params), hide);
        }
    }
}

/// Takes a notice; false for one that nobody waits for.
pub(crate) fn notice(
    pending: &Pending,
    server: &str,
    (method, params): (&str, &Value),
    hide: impl FnOnce(String) -> String,
) -> bool {
    if let Some(id) = wire::progress_of(method, params) {
        return pending.progress(id);
    }
    match method {
        "notifications/tools/list_changed" => pending.list_changed(),
        "notifications/message" if pending.may_log() => log(server, params, hide),
        // Resources and prompts are listed when somebody wants them.
        _ => tracing::debug!("[mcp:{server}] {method}"),
    }
    false
}

/// A line of the server's log. It may hold anything, so it goes to ours only, without configured keys and on one line.
fn log(server: &str, params: &Value, hide: impl FnOnce(String) -> String) {
    let text = match &params["data"] {
        Value::String(text) => text.clone(),
        data => data.to_string(),
    };
    let text: String = hide(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_LOGGED)
        .collect();
    let level = params["level"].as_str().unwrap_or("info");
    match level {
        "debug" => tracing::debug!("[mcp:{server}] {text}"),
        _ => tracing::info!("[mcp:{server}] {level}: {text}"),
    }
}

/// The answer to a request of the server that nobody is asked about.
pub(crate) fn at_once(pending: &Pending, id: &Value, method: &str) -> Option<String> {
    match method {
        "roots/list" => Some(wire::result(id, &json!({"roots": **pending.roots()}))),
        _ if Kind::of(method).is_some() => None,
        _ => Some(wire::answer(id, method)),
    }
}

/// The answer to a request that somebody is asked about, once there is one. `during`: the call in whose answer it came, where that
/// is known.
pub(crate) fn later(
    pending: &Pending,
    during: Option<Id>,
    (id, method, params): (Value, &str, Value),
) -> impl Future<Output = String> + Send + 'static {
    let kind = Kind::of(method).unwrap_or(Kind::Sampling);
    let waiting = pending
        .caller(during)
        .and_then(|(asks, open)| asks.put(kind, params, &open));
    async move {
        let reply = match waiting {
            Some(answer) => answer.await.unwrap_or_else(|_| kind.unanswered()),
            None => kind.unanswered(),
        };
        match reply {
            Ok(result) => wire::result(&id, &result),
            Err((code, message)) => wire::error(&id, code, &message),
        }
    }
}

/// The folders that servers get (`roots/list`).
pub(crate) type RootList = Arc<Vec<Value>>;
