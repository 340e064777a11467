//! Messages over a WebSocket of a running browser.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use outrigger_sandbox::process_time::timeout;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use url::Url;

use super::{MAX_MESSAGE, Wire};
use crate::error::BrowserError;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects, and reads and writes until one end closes.
///
/// # Errors
/// [`BrowserError::Start`].
pub(crate) async fn over_websocket(url: &str, wire: Wire) -> Result<(), BrowserError> {
    let failed = |why: String| BrowserError::Start(format!("{url}: {why}"));
    let parsed = Url::parse(url).map_err(|error| failed(error.to_string()))?;
    let host = parsed
        .host_str()
        .map(|it| it.trim_matches(['[', ']']).to_owned());
    let (Some(host), "ws") = (host, parsed.scheme()) else {
        return Err(failed("`browser.url` is the WebSocket address that Chromium prints, as ws://127.0.0.1:9222/devtools/browser/…".to_owned()));
    };
    let connect = async {
        let stream = TcpStream::connect((host.as_str(), parsed.port().unwrap_or(80)))
            .await
            .map_err(|error| error.to_string())?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let connected =
            tokio_tungstenite::client_async_with_config(url, stream, Some(config)).await;
        connected.map_err(|error| error.to_string())
    };
    let connected = timeout(CONNECT_TIMEOUT, connect).await;
    let (socket, _) = connected
        .map_err(|_| failed("it did not answer".to_owned()))?
        .map_err(failed)?;
    let (mut sink, mut stream) = socket.split();
    let Wire {
        mut outgoing,
        incoming,
    } = wire;
    tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            if message.is_empty() {
                break;
            }
            if sink.send(Message::text(message)).await.is_err() {
                return;
            }
        }
        // It is no longer used.
        let _ = sink.close().await;
    });
    tokio::spawn(async move {
        let cause = loop {
            let taken = match stream.next().await {
                Some(Ok(Message::Text(text))) => incoming.take(text.as_bytes()),
                Some(Ok(Message::Close(_))) | None => break "has closed the connection".to_owned(),
                Some(Ok(_)) => Ok(()),
                Some(Err(error)) => Err(format!("cannot be reached any more ({error})")),
            };
            if let Err(cause) = taken {
                break cause;
            }
        };
        incoming.close(cause);
    });
    Ok(())
}
