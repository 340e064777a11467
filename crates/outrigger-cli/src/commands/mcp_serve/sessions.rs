//! Sessions as resources: their URIs, their text, and their changes.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, unfold};
use outrigger_mcp_server::Exchange;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind, ToolState};
use serde_json::{Value, json};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use super::backend::said_in;

/// Prefix of session URIs.
const BEGIN: &str = "outrigger://session/";
pub(super) const KIND: &str = "text/plain";

pub(super) fn address(id: &SessionId) -> String {
    format!("{BEGIN}{id}")
}

/// Returns the session of a URI.
pub(super) fn id_of(uri: &str) -> Option<&str> {
    uri.strip_prefix(BEGIN)
}

/// Returns the template of all URIs.
pub(super) fn template() -> Value {
    json!({
        "uriTemplate": format!("{BEGIN}{{id}}"), "name": "session", "mimeType": KIND,
        "description": "What was said in a session of this folder",
    })
}

/// Returns the conversation as text.
pub(super) fn transcript(messages: &[MessageWithParts]) -> String {
    messages
        .iter()
        .map(|message| {
            let who = match message.info {
                MessageInfo::User(_) => "User",
                MessageInfo::Assistant(_) => "Outrigger",
            };
            format!("{who}:\n{}\n", said_in(message))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns URIs of sessions in which a turn has ended.
pub(super) fn changes(events: Receiver<Arc<BusEvent>>) -> BoxStream<'static, String> {
    let next = |mut events: Receiver<Arc<BusEvent>>| async move {
        loop {
            match events.recv().await {
                Ok(event) => {
                    if let Event::SessionIdle { session_id } = &event.event {
                        return Some((address(session_id), events));
                    }
                }
                // A lagging client re-reads the session on the next change.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    };
    unfold(events, next).boxed()
}

/// Reports the calls of a turn as they end.
pub(super) struct Steps<'a> {
    exchange: &'a Exchange,
    session: &'a SessionId,
    ended: u64,
}

impl<'a> Steps<'a> {
    pub(super) fn new(exchange: &'a Exchange, session: &'a SessionId) -> Self {
        Self {
            exchange,
            session,
            ended: 0,
        }
    }

    /// Runs alongside the turn until it is dropped.
    pub(super) async fn report(mut self, mut events: Receiver<Arc<BusEvent>>) {
        loop {
            match events.recv().await {
                Ok(event) => self.note(&event.event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn note(&mut self, event: &Event) {
        let Event::PartUpdated {
            session_id, part, ..
        } = event
        else {
            return;
        };
        let PartKind::Tool(call) = &part.kind else {
            return;
        };
        if session_id != self.session || !call.state.is_final() {
            return;
        }
        let title = match &call.state {
            ToolState::Completed { title, .. } => title.as_str(),
            _ => "failed",
        };
        self.ended += 1;
        let message = format!("{}: {title}", call.tool);
        self.exchange.progress(self.ended, None, Some(&message));
    }
}
