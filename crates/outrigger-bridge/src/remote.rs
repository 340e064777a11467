//! The connector: fulfils contracts through a bridge elsewhere (C11).

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::Uri;
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::invoke::{BridgeFrame, Cancel, ControllerFrame, Invoke, SUBPROTOCOL};
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::process_time;
use outrigger_tools::routes::{Invocation, Provider};
use outrigger_tools::{ToolContext, ToolError};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use outrigger_stdx::sync::lock;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(10);
/// Pause between signs of life. A bridge that gives none for two of them is gone.
const PINGS: Duration = Duration::from_secs(30);
/// Largest frame of a bridge that does not say how much it takes, in bytes.
const FRAME: u64 = 8 * 1024 * 1024;

type Answer = Result<ToolOutput, (String, String)>;
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Answer>>>>;

/// A connector that cannot be as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The address is none of a bridge.
    #[error("{url:?} is not an address of a bridge, as ws://127.0.0.1:7070")]
    Address {
        /// As configured.
        url: String,
    },
    /// The token would go to another machine in the clear.
    #[error("{host} is another machine, and the token would go there in the clear")]
    Plain {
        /// Of the address.
        host: String,
    },
}

impl RemoteError {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => "`outrigger bridge` prints its address",
            Self::Plain { .. } => {
                "lead a port of this machine there (`ssh -L`), or set allow_plain = true for a network that is yours"
            }
        }
    }
}

/// A bridge, as a provider. It is connected to when it is first needed, and again when it was lost.
pub struct Remote {
    name: String,
    url: String,
    address: (String, u16),
    token: String,
    link: tokio::sync::Mutex<Option<Link>>,
    count: AtomicU64,
    pings: Duration,
}

#[derive(Clone)]
struct Link {
    /// Calls, written out.
    frames: mpsc::Sender<String>,
    /// Calls that nobody waits for any more; there is one for a call at most.
    cancels: mpsc::UnboundedSender<String>,
    waiting: Waiting,
    /// Largest frame that the bridge takes, in bytes.
    most: u64,
}

impl Remote {
    /// A connector of that name. `plain`: the token may go to another machine in the clear.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn new(name: &str, url: &str, token: String, plain: bool) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Address {
            url: url.to_owned(),
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.to_owned();
        if uri.scheme_str() != Some("ws") {
            return Err(wrong());
        }
        let bare = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let here = bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
        if !here && !plain {
            return Err(RemoteError::Plain { host });
        }
        Ok(Self {
            name: name.to_owned(),
            url: url.to_owned(),
            address: (bare, uri.port_u16().unwrap_or(80)),
            token,
            link: tokio::sync::Mutex::default(),
            count: AtomicU64::new(0),
            pings: PINGS,
        })
    }

    /// With another pause between signs of life.
    #[must_use]
    pub fn with_pings(mut self, pings: Duration) -> Self {
        self.pings = pings;
        self
    }

    fn unavailable(&self, why: impl std::fmt::Display) -> ToolError {
        ToolError::Unavailable(format!(
            "Cannot reach connector `{}` ({}): {why}",
            self.name, self.url
        ))
    }

    fn refused(&self, why: &str, code: &str) -> ToolError {
        ToolError::failed(format!(
            "The connector `{}` refused the call: {why} [{code}]",
            self.name
        ))
    }

    /// The connection, made where there is none.
    async fn link(&self) -> Result<Link, ToolError> {
        let mut link = self.link.lock().await;
        if let Some(link) = link.as_ref().filter(|link| !link.frames.is_closed()) {
            return Ok(link.clone());
        }
        let connected = timeout(CONNECTING, self.connect()).await;
        let made = connected.map_err(|_| self.unavailable("it does not answer"))??;
        *link = Some(made.clone());
        Ok(made)
    }

    async fn connect(&self) -> Result<Link, ToolError> {
        let (host, port) = &self.address;
        if outrigger_sandbox::command_listens(host, *port) {
            return Err(self.unavailable("a command that Outrigger runs listens there"));
        }
        let stream = TcpStream::connect((host.as_str(), *port))
            .await
            .map_err(|error| self.unavailable(error))?;
        let mut request = self
            .url
            .as_str()
            .into_client_request()
            .map_err(|error| self.unavailable(error))?;
        let token = format!("Bearer {}", self.token).parse();
        let token = token.map_err(|_| self.unavailable("its token is not text for a header"))?;
        let headers = request.headers_mut();
        headers.insert(http::header::AUTHORIZATION, token);
        headers.insert(
            http::header::SEC_WEBSOCKET_PROTOCOL,
            http::HeaderValue::from_static(SUBPROTOCOL),
        );
        let (socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .map_err(|error| self.unavailable(error))?;
        let (sink, mut stream) = socket.split();
        // The first frame says what it takes.
        let most = match stream.next().await {
            Some(Ok(Message::Text(text))) => hello(&text),
            Some(Ok(_)) => None,
            Some(Err(error)) => return Err(self.unavailable(error)),
            None => return Err(self.unavailable("it closed the connection")),
        };
        let (frames, outgoing) = mpsc::channel(64);
        let (cancels, cancelled) = mpsc::unbounded_channel();
        let waiting = Waiting::default();
        let answers = Arc::clone(&waiting);
        let pings = self.pings;
        tokio::spawn(async move {
            // Side by side: a large frame on its way must not keep those that come from being read.
            tokio::select! {
                () = write(sink, outgoing, cancelled, pings) => {}
                () = read(stream, &answers, 2 * pings) => {}
            }
            // The callers get an error that the connection was lost. Their senders are closed by now.
            lock(&answers).clear();
        });
        Ok(Link {
            frames,
            cancels,
            waiting,
            most: most.unwrap_or(FRAME),
        })
    }

    async fn call(
        &self,
        contract: Contract,
        params: Value,
        deadline: Duration,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let link = self.link().await?;
        let id = self.count.fetch_add(1, Ordering::Relaxed).to_string();
        let frame = written(&ControllerFrame::Invoke(Invoke {
            id: id.clone(),
            tool: contract.name().to_owned(),
            params,
            deadline_ms: u64::try_from(deadline.as_millis()).ok(),
            session_id: Some(ctx.call.session_id.0.clone()),
        }));
        if frame.len() as u64 > link.most {
            // Sent, it would cost every other call its connection.
            let why = format!(
                "the call has {} bytes, and at most {} are taken",
                frame.len(),
                link.most
            );
            return Err(self.refused(&why, "bridge.too_large"));
        }
        let (sender, answer) = oneshot::channel();
        lock(&link.waiting).insert(id.clone(), sender);
        let cancels = Cancels {
            link: &link,
            id: &id,
        };
        if link.frames.send(frame).await.is_err() {
            return Err(self.unavailable("the connection was lost before the call was sent"));
        }
        let answer = answer.await;
        drop(cancels);
        match answer {
            Ok(Ok(output)) => Ok(output),
            Ok(Err((code, message))) if code == "bridge.busy" => {
                Err(ToolError::Unavailable(format!("{}: {message}", self.name)))
            }
            Ok(Err((code, message))) if code.starts_with("bridge.") => {
                Err(self.refused(&message, &code))
            }
            Ok(Err((_, message))) => Err(ToolError::failed(message)),
            Err(_) => Err(ToolError::failed(format!(
                "The connection to `{}` was lost; whether the call was made is not known",
                self.name
            ))),
        }
    }
}

fn written(frame: &ControllerFrame) -> String {
    serde_json::to_string(frame).unwrap_or_default()
}

/// What the first frame of a bridge says of the frames that it takes.
fn hello(text: &str) -> Option<u64> {
    match serde_json::from_str(text) {
        Ok(BridgeFrame::Hello {
            root, frame_bytes, ..
        }) => {
            tracing::debug!(root, "connected to a bridge");
            frame_bytes
        }
        _ => None,
    }
}

type Socket = WebSocketStream<TcpStream>;

/// Sends what there is to be sent, until the connection is gone or nobody is left who would send.
async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<String>,
    mut cancelled: mpsc::UnboundedReceiver<String>,
    pings: Duration,
) {
    let mut pings = tokio::time::interval(pings);
    loop {
        let message = tokio::select! {
            biased;
            Some(id) = cancelled.recv() => {
                Message::text(written(&ControllerFrame::Cancel(Cancel { id })))
            }
            frame = outgoing.recv() => match frame {
                Some(frame) => Message::text(frame),
                None => return,
            },
            _ = pings.tick() => Message::Ping(Vec::new().into()),
        };
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

/// Hands answers to those who wait for them, until the connection is gone or gives no sign of life for so long.
async fn read(mut stream: SplitStream<Socket>, answers: &Waiting, silence: Duration) {
    loop {
        match process_time::timeout(silence, stream.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => answered(answers, &text),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return,
            Ok(Some(Ok(_))) => {}
            Err(_) => {
                tracing::warn!("a bridge gave no sign of life for {} s", silence.as_secs());
                return;
            }
        }
    }
}

fn answered(waiting: &Waiting, text: &str) {
    let (id, answer) = match serde_json::from_str(text) {
        Ok(BridgeFrame::Result { id, output }) => (id, Ok(output)),
        Ok(BridgeFrame::Error {
            id: Some(id),
            code,
            message,
            output,
        }) => {
            // The model reads what there is.
            let message = match output {
                Some(output) => format!("{message}\n\n{output}"),
                None => message,
            };
            (id, Err((code, message)))
        }
        Ok(BridgeFrame::Error { code, message, .. }) => {
            tracing::warn!(code, message, "a bridge could not read a frame");
            return;
        }
        Ok(BridgeFrame::Hello { .. }) => return,
        Err(error) => {
            tracing::warn!(%error, "a frame of a bridge cannot be read");
            return;
        }
    };
    if let Some(sender) = lock(waiting).remove(&id) {
        let _ = sender.send(answer);
    }
}

/// A call that nobody waits for any more is cancelled.
struct Cancels<'a> {
    link: &'a Link,
    id: &'a str,
}

impl Drop for Cancels<'_> {
    fn drop(&mut self) {
        if lock(&self.link.waiting).remove(self.id).is_some() {
            let _ = self.link.cancels.send(self.id.to_owned());
        }
    }
}

/// Paths in the session's folder are sent relative to it: the bridge has a folder of its own in its place.
fn relative(mut params: Value, directory: &Path) -> Value {
    for key in ["filePath", "workdir"] {
        let Some(Value::String(path)) = params.get_mut(key) else {
            continue;
        };
        if let Ok(inside) = Path::new(path.as_str()).strip_prefix(directory) {
            let inside = inside.display().to_string();
            *path = if inside.is_empty() {
                ".".to_owned()
            } else {
                inside
            };
        }
    }
    params
}

impl Provider for Remote {
    fn invoke<'a>(
        &'a self,
        call: Invocation<'a>,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let params = relative(call.input.clone(), &ctx.directory);
        let own = call.tool.declared.constraints.timeout_ms;
        let deadline = own.map_or(ctx.limits.deadline, Duration::from_millis);
        Box::pin(self.call(call.contract, params, deadline, ctx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_checked_before_a_token_goes_anywhere() {
        for (url, plain, want) in [
            ("ws://127.0.0.1:7070", false, "ok"),
            ("ws://localhost:7070/", false, "ok"),
            ("ws://[::1]:7070", false, "ok"),
            ("ws://10.0.0.5:7070", true, "ok"),
            ("ws://10.0.0.5:7070", false, "plain"),
            ("ws://127.0.0.1.evil.example:7070", false, "plain"),
            ("http://127.0.0.1:7070", false, "address"),
            ("127.0.0.1:7070", false, "address"),
            ("ws://", false, "address"),
        ] {
            let got = match Remote::new("box", url, "t".into(), plain) {
                Ok(_) => "ok",
                Err(RemoteError::Plain { .. }) => "plain",
                Err(RemoteError::Address { .. }) => "address",
            };
            assert_eq!(got, want, "{url}");
        }
    }

    #[test]
    fn paths_of_the_session_are_sent_relative() {
        for (params, want) in [
            (json!({"filePath": "/p/a/b"}), json!({"filePath": "a/b"})),
            (json!({"filePath": "a/b"}), json!({"filePath": "a/b"})),
            (json!({"filePath": "/etc/x"}), json!({"filePath": "/etc/x"})),
            (json!({"workdir": "/p"}), json!({"workdir": "."})),
            (json!({"command": "/p/x"}), json!({"command": "/p/x"})),
        ] {
            assert_eq!(relative(params, Path::new("/p")), want);
        }
    }
}
