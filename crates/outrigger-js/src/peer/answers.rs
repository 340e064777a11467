//! Answers to the host's calls.
//!
//! Plugin code that writes to the channel itself may answer for others in its process, before they do. An answer that the
//! host script cannot have sent ends the process at once: the code entered now is the culprit, and a moment later it may be
//! another plugin's.

use std::sync::atomic::Ordering;

use outrigger_protocol::rpc::{RpcError, host};
use serde_json::Value;

use super::{Call, Peer, lock};
use crate::error::JsError;

impl Peer {
    /// Hands an answer to its caller.
    ///
    /// # Errors
    /// [`JsError::BadFrame`] for an answer that the host script does not send.
    pub(super) fn receive_answer(
        &self,
        id: u64,
        answer: Result<Value, RpcError>,
    ) -> Result<(), JsError> {
        let bad = |reason: String| Err(JsError::BadFrame { reason });
        if !(1..self.next.load(Ordering::Relaxed)).contains(&id) {
            return bad(format!("an answer to call {id}, which was not made"));
        }
        let mut open = lock(&self.open);
        if let (Some(call), Ok(value)) = (open.calls.get(&id), &answer)
            && let Some(wrong) = call.refuses(value)
        {
            return bad(wrong.to_owned());
        }
        let call = open.calls.remove(&id);
        drop(open);
        lock(&self.entered).answered(id);
        if let Some(call) = call {
            // The receiver is dropped if the call was given up at this moment.
            let _ = call.answer.send(answer);
        }
        Ok(())
    }
}

impl Call {
    /// Returns what is wrong with an answer, whatever a plugin returned to the host script.
    fn refuses(&self, answer: &Value) -> Option<&'static str> {
        match self.method {
            host::TOOL_RUN if !answer["title"].is_string() || !answer["output"].is_string() => {
                Some("a call of a tool was answered without its output")
            }
            host::INITIALIZE if !answer["plugins"].is_array() => {
                Some("loading was answered without the plugins")
            }
            _ if self.results.is_some() && self.next == 0 => {
                Some("a call of a hook was answered without any result")
            }
            _ => None,
        }
    }
}
