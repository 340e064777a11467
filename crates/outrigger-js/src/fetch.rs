//! A streamed body of a plugin's `fetch`: read on demand, and cancelled when dropped.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use outrigger_protocol::login::{AuthChunk, AuthCredit};
use outrigger_protocol::rpc::host;
use serde_json::json;
use tokio::sync::mpsc;

use crate::peer::Peer;

/// Maximum number of bytes that a process may be ahead of the reader of the body.
const WINDOW: u64 = 1024 * 1024;

/// The rest of an answer. Dropping it cancels the plugin's request.
pub struct FetchBody {
    peer: Arc<Peer>,
    call: u64,
    chunks: mpsc::UnboundedReceiver<AuthChunk>,
    over: bool,
}

impl std::fmt::Debug for FetchBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchBody")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}

impl FetchBody {
    pub(crate) fn new(
        peer: Arc<Peer>,
        call: u64,
        chunks: mpsc::UnboundedReceiver<AuthChunk>,
    ) -> Self {
        Self {
            peer,
            call,
            chunks,
            over: false,
        }
    }

    /// Starts the body after the head has arrived.
    pub(crate) fn begin(self) -> Self {
        self.grant(WINDOW);
        self
    }

    fn grant(&self, bytes: u64) {
        let credit = AuthCredit {
            call: self.call,
            bytes,
        };
        // Refused only if the process has exited, which the chunks report.
        let _ = self.peer.notify(host::AUTH_CREDIT, &credit);
    }

    /// Returns the next chunk; `None` at the end. After an error there are no more.
    pub async fn next(&mut self) -> Option<Result<Bytes, String>> {
        if self.over {
            return None;
        }
        let Some(chunk) = self.chunks.recv().await else {
            self.over = true;
            return Some(Err(self.peer.closed_error().to_string()));
        };
        if let Some(error) = chunk.error {
            self.over = true;
            return Some(Err(error));
        }
        if let Some(data) = chunk.data {
            let Ok(bytes) = STANDARD.decode(data) else {
                return Some(Err("a piece of the answer is not base64".to_owned()));
            };
            self.grant(bytes.len() as u64);
            return Some(Ok(bytes.into()));
        }
        self.over = true;
        None
    }
}

impl Drop for FetchBody {
    fn drop(&mut self) {
        self.peer.forget_stream(self.call);
        if !self.over {
            let _ = self.peer.notify(host::CANCEL, &json!({ "id": self.call }));
        }
    }
}
