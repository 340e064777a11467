//! Answers of handlers that come by file, and the results that name them.

use std::sync::Arc;

use outrigger_protocol::rpc::{HookResult, MAX_FRAME, RpcError};
use outrigger_protocol::transfer::{FileOpen, FileOpened};
use serde_json::Value;

use super::{Answered, Peer, lock, rpc_error};
use crate::error::JsError;

const REFUSED: i64 = -32000;

impl Peer {
    /// A handler of an open call has more to say than fits into a frame: makes the file that it may write.
    pub(super) async fn open_file(&self, wanted: FileOpen) -> Result<Value, RpcError> {
        let refuse = |why: &str| Err(rpc_error(REFUSED, format!("no file for an answer: {why}")));
        let Some(exchange) = self.exchange.clone() else {
            return refuse("files are switched off");
        };
        if wanted.bytes > MAX_FRAME as u64 {
            return refuse(&format!(
                "{} bytes are over the limit of {MAX_FRAME}",
                wanted.bytes
            ));
        }
        if !self.may_have(&wanted) {
            return refuse("the call does not wait for that handler, or it has one");
        }
        let made = tokio::task::spawn_blocking(move || exchange.ticket()).await;
        let ticket = match made {
            Ok(Ok(ticket)) => ticket,
            Ok(Err(error)) => return refuse(&error.to_string()),
            Err(error) => return refuse(&error.to_string()),
        };
        let answer = FileOpened {
            file: ticket.path().to_string_lossy().into_owned(),
            token: ticket.token().to_owned(),
        };
        let mut open = lock(&self.open);
        // It may have ended meanwhile; then the file goes with the ticket.
        match open.calls.get_mut(&wanted.call) {
            Some(call) if call.next == wanted.handler && call.file.is_none() => {
                call.file = Some(ticket);
            }
            _ => return refuse("the call has ended"),
        }
        drop(open);
        serde_json::to_value(answer).map_err(|error| rpc_error(REFUSED, error.to_string()))
    }

    fn may_have(&self, wanted: &FileOpen) -> bool {
        let open = lock(&self.open);
        open.calls.get(&wanted.call).is_some_and(|call| {
            call.results.is_some() && call.next == wanted.handler && call.file.is_none()
        })
    }

    /// A handler has ended.
    pub(super) fn result(self: &Arc<Self>, result: HookResult) -> Result<(), JsError> {
        let bad = |reason: String| Err(JsError::BadFrame { reason });
        let (results, file) = match lock(&self.open).calls.get_mut(&result.call) {
            // Nobody waits for it any more.
            None => return Ok(()),
            Some(call) if call.next != result.handler => {
                // Made up by code that writes to the channel by itself. What is entered now is whose it is.
                return bad(format!(
                    "a result of handler {} where that of {} was due",
                    result.handler, call.next
                ));
            }
            Some(call) => {
                call.next += 1;
                (call.results.clone(), call.file.take())
            }
        };
        // A token is good for the handler that was given it, once.
        let file = match (&result.file, file) {
            (None, _) => None,
            (Some(token), Some(file)) if file.token() == token => Some(file),
            (Some(_), _) => {
                return bad("a result names a file that was not made for it".to_owned());
            }
        };
        // Only now: what breaks the rules was entered still, so that it is known whose it is.
        lock(&self.entered).answered(result.call);
        if let Some(results) = results {
            let _ = results.send(Answered { result, file });
        }
        Ok(())
    }
}
