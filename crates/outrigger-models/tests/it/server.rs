//! A model server with scripted answers.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What follows the bytes of an answer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Close,
    Stall,
}

/// One answer.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) piece: usize,
    pub(crate) then: Then,
}

/// A captured request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: serde_json::Value,
    /// The raw body.
    pub(crate) text: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let line = self
            .head
            .lines()
            .find(|l| l.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
    /// Receives a value when a client disconnects during a stall.
    pub(crate) gone: mpsc::UnboundedReceiver<()>,
}

pub(crate) fn sse(body: &str) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Reply {
        bytes: format!("{head}{body}").into_bytes(),
        piece: usize::MAX,
        then: Then::Close,
    }
}

pub(crate) fn status(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply {
        bytes: format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}").into_bytes(),
        piece: usize::MAX,
        then: Then::Close,
    }
}

impl Reply {
    pub(crate) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
    pub(crate) fn in_pieces(self, piece: usize) -> Self {
        Self { piece, ..self }
    }
}

/// Returns chat completion chunks as a stream.
pub(crate) fn chunks(lines: &[&str]) -> String {
    lines.iter().map(|l| format!("data: {l}\n\n")).collect()
}

pub(crate) fn hello() -> Reply {
    sse(&chunks(&[
        r#"{"choices":[{"delta":{"content":"Hi"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]))
}

/// Answers the requests in order; the last answer is repeated.
pub(crate) async fn serve(script: Vec<Reply>) -> Server {
    let count = std::sync::atomic::AtomicUsize::new(0);
    serve_with(move |_| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        script[number.min(script.len() - 1)].clone()
    })
    .await
}

/// Answers each request with the result of a function.
pub(crate) async fn serve_with(
    script: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> Server {
    let script = Arc::new(script);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (tell, gone) = mpsc::unbounded_channel();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let script = Arc::clone(&script);
            let (seen, tell) = (Arc::clone(&seen), tell.clone());
            tokio::spawn(async move {
                let _ = answer(socket, &*script, &seen, &tell).await;
            });
        }
    });
    Server {
        url,
        requests,
        gone,
    }
}

async fn answer(
    mut socket: TcpStream,
    script: &(impl Fn(&Request) -> Reply + Sync),
    seen: &Mutex<Vec<Request>>,
    tell: &mpsc::UnboundedSender<()>,
) -> std::io::Result<()> {
    let request = read_request(&mut socket).await?;
    let reply = script(&request);
    seen.lock().unwrap().push(request);
    for piece in reply.bytes.chunks(reply.piece.min(reply.bytes.len())) {
        socket.write_all(piece).await?;
        socket.flush().await?;
        tokio::task::yield_now().await;
    }
    if reply.then == Then::Stall {
        let mut byte = [0u8; 1];
        let _ = socket.read(&mut byte).await;
        let _ = tell.send(());
    }
    socket.shutdown().await
}

async fn read_request(socket: &mut TcpStream) -> std::io::Result<Request> {
    let mut bytes = Vec::new();
    loop {
        let mut buffer = [0u8; 4096];
        let n = socket.read(&mut buffer).await?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..n]);
        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length: usize = head
            .lines()
            .find_map(|l| {
                l.to_ascii_lowercase()
                    .strip_prefix("content-length:")
                    .map(|v| v.trim().parse().unwrap())
            })
            .unwrap_or(0);
        if bytes.len() >= end + 4 + length {
            let text = String::from_utf8_lossy(&bytes[end + 4..end + 4 + length]).into_owned();
            let body = serde_json::from_str(&text).unwrap_or_default();
            return Ok(Request { head, body, text });
        }
    }
}
