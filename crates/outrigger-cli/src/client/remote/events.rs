//! The events of a server's folder, as long as the server is there.

use std::time::Duration;

use outrigger_protocol::event::BusEvent;
use reqwest::Method;
use tokio::sync::mpsc;

use super::Remote;
use crate::failure::Failure;

/// Between the end of a stream and the next try.
const AGAIN: Duration = Duration::from_millis(300);
/// So many tries in a row may fail.
const TRIES: u32 = 20;

/// What a stream of events brings.
#[derive(Debug)]
pub(crate) enum Told {
    /// An event.
    Event(Box<BusEvent>),
    /// The stream ended and was opened again: something may be missing.
    Gap,
    /// The server is gone.
    Gone,
}

/// Listens from now on: what happens after this comes back is heard.
///
/// # Errors
/// A server that cannot be reached or refuses.
pub(crate) async fn listen(remote: &Remote) -> Result<mpsc::UnboundedReceiver<Told>, Failure> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut stream = Stream::open(remote).await?;
    let remote = remote.clone();
    tokio::spawn(async move {
        loop {
            while let Some(event) = stream.next().await {
                if sender.send(Told::Event(Box::new(event))).is_err() {
                    return;
                }
            }
            let mut tries = 0;
            stream = loop {
                tokio::time::sleep(AGAIN).await;
                match Stream::open(&remote).await {
                    Ok(stream) => break stream,
                    Err(_) if tries < TRIES && !sender.is_closed() => tries += 1,
                    Err(_) => {
                        let _ = sender.send(Told::Gone);
                        return;
                    }
                }
            };
            if sender.send(Told::Gap).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

struct Stream {
    response: reqwest::Response,
    pending: Vec<u8>,
}

impl Stream {
    /// Opened, and its first event has come: nothing is missed from here on.
    async fn open(remote: &Remote) -> Result<Self, Failure> {
        let response = remote.send(Method::GET, "/event", None).await?;
        let mut stream = Self {
            response,
            pending: Vec::new(),
        };
        match stream.next().await {
            Some(_) => Ok(stream),
            None => Err(remote.strange("its stream of events ended at once")),
        }
    }

    async fn next(&mut self) -> Option<BusEvent> {
        loop {
            if let Some(event) = take(&mut self.pending) {
                return Some(event);
            }
            let piece = self.response.chunk().await.ok()??;
            self.pending.extend_from_slice(&piece);
        }
    }
}

/// The next whole event; what is none is passed over.
fn take(pending: &mut Vec<u8>) -> Option<BusEvent> {
    loop {
        let end = pending.windows(2).position(|two| two == b"\n\n")?;
        let block: Vec<u8> = pending.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&block).into_owned();
        let data: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| data.strip_prefix(' ').unwrap_or(data))
            .collect();
        match serde_json::from_str(&data.join("\n")) {
            Ok(event) => return Some(event),
            Err(error) => tracing::debug!("[attach] not an event: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let text = ": a comment\n\nevent: message\ndata: {\"id\":\"evt_1\",\"type\":\"server.connected\",\n\
                    data: \"properties\":{}}\n\ndata: nonsense\n\ndata:{\"id\":\"evt_2\",\"type\":\"x\",\"properties\":{}}\n\ndata: {";
        let (mut pending, mut kinds) = (Vec::new(), Vec::new());
        for byte in text.bytes() {
            pending.push(byte);
            kinds.extend(take(&mut pending).map(|event| event.event.kind().to_owned()));
        }
        assert_eq!(kinds, ["server.connected", "x"]);
        assert_eq!(pending, b"data: {");
    }
}
