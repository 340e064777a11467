//! Answers of handlers by file, and the results that name them.

use std::sync::Arc;

use outrigger_protocol::rpc::{HookResult, MAX_FRAME, RpcError};
use outrigger_protocol::transfer::{FileOpen, FileOpened};
use serde_json::Value;

use super::{Answered, Peer, lock, rpc_error};
use crate::error::JsError;

const REFUSED: i64 = -32000;

impl Peer {
    /// Creates the file for a handler of an open call whose answer does not fit into a frame.
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
        // The call may have ended meanwhile; then the file is removed with the ticket.
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

    /// Handles the result of a handler.
    pub(super) fn result(self: &Arc<Self>, result: HookResult) -> Result<(), JsError> {
        let bad = |reason: String| Err(JsError::BadFrame { reason });
        let (results, file) = match lock(&self.open).calls.get_mut(&result.call) {
            // No caller waits for it.
            None => return Ok(()),
            Some(call) if call.next != result.handler => {
                // Forged by code that writes to the channel itself. The code entered now is the culprit.
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
        // A token is valid for the handler that was given it, once.
        let file = match (&result.file, file) {
            (None, _) => None,
            (Some(token), Some(file)) if file.token() == token => Some(file),
            (Some(_), _) => {
                return bad("a result names a file that was not made for it".to_owned());
            }
        };
        // Only now: after a violation the culprit must still count as entered.
        lock(&self.entered).answered(result.call);
        if let Some(results) = results {
            let _ = results.send(Answered { result, file });
        }
        Ok(())
    }
}
