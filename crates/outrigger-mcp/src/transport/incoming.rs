//! Handling of a server's own messages in all transports: progress reports, changed lists, log lines, and requests.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::requests::Kind;
use crate::transport::pending::Pending;
use crate::transport::remote::Remote;
use crate::wire::{self, Id, Incoming};

/// Maximum characters of a log line.
const MAX_LOGGED: usize = 1_000;

/// Handles a message of a remote server. `during`: the call in whose response it came; `send` posts the reply to a request.
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
                let answer = later(pending, during, id, &method, params);
                tokio::spawn(async move { send(answer.await) });
            }
        },
        Incoming::Notice { method, params } => {
            let hide = |text| remote.hide(text);
            notice(pending, &remote.server, &method, &params, hide);
        }
    }
}

/// Handles a notification; returns `false` for an unexpected one.
pub(crate) fn notice(
    pending: &Pending,
    server: &str,
    method: &str,
    params: &Value,
    hide: impl FnOnce(String) -> String,
) -> bool {
    if let Some(id) = wire::progress_of(method, params) {
        return pending.progress(id);
    }
    match method {
        "notifications/tools/list_changed" => pending.list_changed(),
        "notifications/message" if pending.may_log() => log(server, params, hide),
        // Resources and prompts are listed on demand.
        _ => tracing::debug!("[mcp:{server}] {method}"),
    }
    false
}

/// Logs a line of the server's log. It may contain anything, so it goes to our log only, without configured keys and as one line.
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

/// Returns the reply to a request of the server that needs no one's answer.
pub(crate) fn at_once(pending: &Pending, id: &Value, method: &str) -> Option<String> {
    match method {
        "roots/list" => Some(wire::result(id, &json!({"roots": **pending.roots()}))),
        _ if Kind::of(method).is_some() => None,
        _ => Some(wire::answer(id, method)),
    }
}

/// Answers a request that needs the user or the model. `during`: the call in whose response it came, if known.
pub(crate) fn later(
    pending: &Pending,
    during: Option<Id>,
    id: Value,
    method: &str,
    params: Value,
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
