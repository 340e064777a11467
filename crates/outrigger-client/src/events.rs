//! An agent's events: from the bus of this process, or from the stream of a server while it exists.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use outrigger_protocol::event::BusEvent;
use outrigger_sse::Parser;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};

use crate::error::ClientError;
use crate::remote::Remote;

/// Pause before reconnecting to a stream.
const RETRY_INTERVAL: Duration = Duration::from_millis(300);
/// Maximum number of failed attempts in a row.
const MAX_RETRIES: u32 = 20;
/// Maximum bytes of a server's event: as many as may be queued there.
const MAX_EVENT: usize = 64 << 20;
/// How long the last events of a turn may take after its response, ...
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(2);
/// ... and if the session is idle already.
const IDLE_TIMEOUT: Duration = Duration::from_millis(50);

/// An item of the event stream.
#[derive(Debug)]
pub enum StreamItem {
    /// An event.
    Event(Arc<BusEvent>),
    /// Events are missing here.
    Gap,
    /// The server is gone; there are no more events.
    End,
}

/// The events of an agent.
pub enum Events {
    /// From this process.
    Local(broadcast::Receiver<Arc<BusEvent>>),
    /// From a server.
    Remote(mpsc::UnboundedReceiver<StreamItem>),
}

impl Events {
    /// Returns the next item.
    pub async fn next(&mut self) -> StreamItem {
        match self {
            Self::Local(events) => match events.recv().await {
                Ok(event) => StreamItem::Event(event),
                Err(RecvError::Lagged(_)) => StreamItem::Gap,
                Err(RecvError::Closed) => StreamItem::End,
            },
            Self::Remote(items) => items.recv().await.unwrap_or(StreamItem::End),
        }
    }

    /// Returns the next item of a turn that has ended; `None` if there are no more. Those of this process have arrived already; those
    /// of a server may be on their way until the session is idle.
    pub async fn rest(&mut self, idle: bool) -> Option<StreamItem> {
        match self {
            Self::Local(events) => match events.try_recv() {
                Ok(event) => Some(StreamItem::Event(event)),
                Err(TryRecvError::Lagged(_)) => Some(StreamItem::Gap),
                Err(TryRecvError::Empty | TryRecvError::Closed) => None,
            },
            Self::Remote(items) => {
                let timeout = if idle {
                    IDLE_TIMEOUT
                } else {
                    LAST_EVENTS_TIMEOUT
                };
                match tokio::time::timeout(timeout, items.recv()).await {
                    Ok(None | Some(StreamItem::End)) | Err(_) => None,
                    Ok(item) => item,
                }
            }
        }
    }

    /// Discards queued events, which belong to earlier turns.
    pub fn skip_waiting(&mut self) {
        if let Self::Local(events) = self {
            *events = events.resubscribe();
        }
    }
}

/// Subscribes to a server.
///
/// # Errors
/// The server cannot be reached, or refuses.
pub(crate) async fn listen(
    remote: &Remote,
) -> Result<mpsc::UnboundedReceiver<StreamItem>, ClientError> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut stream = Stream::open(remote).await?;
    let remote = remote.clone();
    tokio::spawn(async move {
        loop {
            while let Some(event) = stream.next().await {
                if sender.send(StreamItem::Event(Arc::new(event))).is_err() {
                    return;
                }
            }
            let mut tries = 0;
            stream = loop {
                tokio::time::sleep(RETRY_INTERVAL).await;
                match Stream::open(&remote).await {
                    Ok(stream) => break stream,
                    Err(_) if tries < MAX_RETRIES && !sender.is_closed() => tries += 1,
                    Err(_) => {
                        let _ = sender.send(StreamItem::End);
                        return;
                    }
                }
            };
            if sender.send(StreamItem::Gap).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

struct Stream {
    response: reqwest::Response,
    parser: Parser,
    ready: VecDeque<BusEvent>,
}

impl Stream {
    /// Opens the stream and waits for its first event: nothing is missed from here on.
    async fn open(remote: &Remote) -> Result<Self, ClientError> {
        let response = remote.send(Method::GET, "/event", None).await?;
        let mut stream = Self {
            response,
            parser: Parser::new(MAX_EVENT),
            ready: VecDeque::new(),
        };
        match stream.next().await {
            Some(_) => Ok(stream),
            None => Err(remote.strange("its stream of events ended at once")),
        }
    }

    async fn next(&mut self) -> Option<BusEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let piece = self.response.chunk().await.ok()??;
            take(&mut self.parser, &piece, &mut self.ready)?;
        }
    }
}

/// Parses the events of a piece of the stream; skips invalid ones. `None` if one is too long to continue.
fn take(parser: &mut Parser, piece: &[u8], events: &mut VecDeque<BusEvent>) -> Option<()> {
    let mut found = Vec::new();
    parser.feed(piece, &mut found).ok()?;
    for event in found {
        match serde_json::from_str(&event.data) {
            Ok(event) => events.push_back(event),
            Err(error) => tracing::debug!("[attach] not an event: {error}"),
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let text = ": a comment\n\nevent: message\ndata: {\"id\":\"evt_1\",\"type\":\"server.connected\",\n\
                    data: \"properties\":{}}\n\ndata: nonsense\n\ndata:{\"id\":\"evt_2\",\"type\":\"x\",\"properties\":{}}\n\ndata: {";
        let (mut parser, mut events) = (Parser::new(MAX_EVENT), VecDeque::new());
        for byte in text.bytes() {
            take(&mut parser, &[byte], &mut events).unwrap();
        }
        let kinds: Vec<&str> = events.iter().map(|event| event.event.kind()).collect();
        assert_eq!(kinds, ["server.connected", "x"]);
    }
}
