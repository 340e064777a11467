//! The connector: fulfils contracts through a bridge elsewhere (C11).

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{SinkExt as _, StreamExt as _};
use http::Uri;
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::invoke::{BrainFrame, BridgeFrame, Cancel, Invoke, SUBPROTOCOL};
use outrigger_protocol::tool::ToolOutput;
use outrigger_tools::routes::{Invocation, Provider};
use outrigger_tools::{ToolContext, ToolError};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(10);
/// Pause between signs of life.
const PINGS: Duration = Duration::from_secs(30);

type Answer = Result<ToolOutput, (String, String)>;
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Answer>>>>;

/// A connector that cannot be as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The address is none of a bridge.
    #[error("{url:?} is no address of a bridge, as ws://127.0.0.1:7070")]
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
}

#[derive(Clone)]
struct Link {
    frames: mpsc::Sender<BrainFrame>,
    waiting: Waiting,
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
        })
    }

    fn unavailable(&self, why: impl std::fmt::Display) -> ToolError {
        ToolError::Unavailable(format!(
            "The connector `{}` ({}) cannot be reached: {why}",
            self.name, self.url
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
        let stream = TcpStream::connect((host.as_str(), *port))
            .await
            .map_err(|error| self.unavailable(error))?;
        let mut request = self
            .url
            .as_str()
            .into_client_request()
            .map_err(|error| self.unavailable(error))?;
        let token = format!("Bearer {}", self.token).parse();
        let token = token.map_err(|_| self.unavailable("its token is no text for a header"))?;
        let headers = request.headers_mut();
        headers.insert(http::header::AUTHORIZATION, token);
        headers.insert(
            http::header::SEC_WEBSOCKET_PROTOCOL,
            http::HeaderValue::from_static(SUBPROTOCOL),
        );
        let (socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .map_err(|error| self.unavailable(error))?;
        let (mut sink, mut stream) = socket.split();
        let (frames, mut outgoing) = mpsc::channel::<BrainFrame>(64);
        let waiting = Waiting::default();
        let answers = Arc::clone(&waiting);
        tokio::spawn(async move {
            let mut pings = tokio::time::interval(PINGS);
            loop {
                tokio::select! {
                    frame = outgoing.recv() => {
                        let Some(frame) = frame else { break };
                        let text = serde_json::to_string(&frame).unwrap_or_default();
                        if sink.send(Message::text(text)).await.is_err() { break }
                    }
                    _ = pings.tick() => {
                        if sink.send(Message::Ping(Vec::new().into())).await.is_err() { break }
                    }
                    message = stream.next() => match message {
                        Some(Ok(Message::Text(text))) => answered(&answers, &text),
                        Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                        Some(Ok(_)) => {}
                    }
                }
            }
            // Whoever waits reads that the connection was lost.
            outgoing.close();
            lock(&answers).clear();
        });
        Ok(Link { frames, waiting })
    }

    async fn call(
        &self,
        contract: Contract,
        params: Value,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let link = self.link().await?;
        let id = self.count.fetch_add(1, Ordering::Relaxed).to_string();
        let (sender, answer) = oneshot::channel();
        lock(&link.waiting).insert(id.clone(), sender);
        let cancels = Cancels {
            link: &link,
            id: &id,
        };
        let frame = BrainFrame::Invoke(Invoke {
            id: id.clone(),
            tool: contract.name().to_owned(),
            params,
            deadline_ms: None,
            session_id: Some(ctx.call.session_id.0.clone()),
        });
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
            Ok(Err((code, message))) => Err(ToolError::failed(if code.starts_with("bridge.") {
                format!(
                    "The connector `{}` refused the call: {message} [{code}]",
                    self.name
                )
            } else {
                message
            })),
            Err(_) => Err(ToolError::failed(format!(
                "The connection to `{}` was lost; whether the call was made is not known",
                self.name
            ))),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        Ok(BridgeFrame::Hello { root, .. }) => {
            tracing::debug!(root, "connected to a bridge");
            return;
        }
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
            let id = self.id.to_owned();
            let _ = self.link.frames.try_send(BrainFrame::Cancel(Cancel { id }));
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
        Box::pin(self.call(call.contract, params, ctx))
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
