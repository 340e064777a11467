//! Handles messages of the other side: its requests are answered, each in a separate task.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::lines::Lines;
use crate::message::{Message, RpcError, answer};
use crate::peer::Peer;

/// Limits for the other side.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of a line. A longer one is refused, and the next one read.
    pub line: usize,
    /// Maximum number of concurrent requests. Further ones are refused: those running might depend on one that would wait.
    pub at_once: usize,
}

/// A response, and what follows it.
pub struct Answer {
    /// The result.
    pub value: Value,
    /// Runs after the response was sent.
    pub after: Option<BoxFuture<'static, ()>>,
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { value, after: None }
    }
}

/// The methods for the other side. Both functions are called in the order of its lines; only the future of [`Self::request`] runs
/// concurrently.
pub trait Service: Send + Sync {
    /// Handles a request.
    fn request(&self, method: &str, params: Value) -> BoxFuture<'static, Result<Answer, RpcError>>;

    /// Handles a notification.
    fn notice(&self, method: &str, params: Value);
}

/// By the identifier as JSON.
type Running = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

/// Answers messages until the input ends. Requests in progress are then dropped.
///
/// # Errors
/// Those of the input.
pub async fn serve(
    peer: &Peer,
    input: impl AsyncRead + Unpin,
    limits: Limits,
    service: &dyn Service,
) -> io::Result<()> {
    let mut lines = Lines::new(input, limits.line);
    let mut tasks = JoinSet::new();
    let running = Running::default();
    let mut is_cut = false;
    let ended = loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        while tasks.try_join_next().is_some() {}
        if std::mem::replace(&mut is_cut, !line.whole) {
            continue;
        }
        if is_cut {
            let why = format!("a line is longer than {} bytes", limits.line);
            let refused = RpcError::new(RpcError::INVALID_REQUEST, why);
            peer.send(answer(&Value::Null, Err(refused))).await;
            continue;
        }
        if line.bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match Message::read(&line.bytes) {
            Err((id, error)) => peer.send(answer(&id, Err(error))).await,
            Ok(Message::Answer { id, result }) => peer.settle(id, result),
            Ok(Message::Notice { method, params }) => match peer.cancel_method() {
                Some(cancel) if cancel == method => take_back(&running, &params["requestId"]),
                _ => service.notice(&method, params),
            },
            Ok(Message::Request { id, .. }) if tasks.len() >= limits.at_once => {
                let why = format!("{} requests are being answered already", limits.at_once);
                let refused = RpcError::new(RpcError::INTERNAL, why);
                peer.send(answer(&id, Err(refused))).await;
            }
            Ok(Message::Request { id, method, params }) => {
                let work = service.request(&method, params);
                // Before the next line is read, which may cancel it.
                let (taken, is_taken) = oneshot::channel();
                entries(&running).insert(id.to_string(), taken);
                let done = Done {
                    peer: peer.clone(),
                    id,
                    running: Arc::clone(&running),
                };
                tasks.spawn(done.after(work, is_taken));
            }
        }
    };
    peer.close();
    tasks.shutdown().await;
    ended
}

/// A request in progress.
struct Done {
    peer: Peer,
    id: Value,
    running: Running,
}

impl Done {
    async fn after(
        self,
        work: BoxFuture<'static, Result<Answer, RpcError>>,
        is_taken: oneshot::Receiver<()>,
    ) {
        let result = tokio::select! {
            biased;
            result = work => result,
            Ok(()) = is_taken => Err(RpcError::new(RpcError::CANCELLED, "the request was cancelled")),
        };
        entries(&self.running).remove(&self.id.to_string());
        let (result, after) = match result {
            Ok(Answer { value, after }) => (Ok(value), after),
            Err(error) => (Err(error), None),
        };
        self.peer.send(answer(&self.id, result)).await;
        if let Some(after) = after {
            after.await;
        }
    }
}

fn take_back(running: &Running, id: &Value) {
    if let Some(taken) = entries(running).remove(&id.to_string()) {
        let _ = taken.send(());
    }
}

fn entries(running: &Running) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    struct Echo {
        peer: Peer,
        heard: Arc<Mutex<Vec<String>>>,
    }

    /// Sets a flag on drop.
    struct Dropped(Arc<AtomicBool>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    impl Service for Echo {
        fn request(
            &self,
            method: &str,
            params: Value,
        ) -> BoxFuture<'static, Result<Answer, RpcError>> {
            let peer = self.peer.clone();
            let method = method.to_owned();
            Box::pin(async move {
                match method.as_str() {
                    "echo" => Ok(params.into()),
                    "ask" => peer.request("back", &params).await.map(Answer::from),
                    "hang" => std::future::pending().await,
                    other => Err(RpcError::no_method(other)),
                }
            })
        }

        fn notice(&self, method: &str, _: Value) {
            self.heard.lock().unwrap().push(method.to_owned());
        }
    }

    /// Returns the responses to these lines, sorted.
    async fn answers(lines: &str, limits: Limits) -> Vec<String> {
        let (peer, mut outbox) = Peer::new(Some("$/cancel_request"));
        let heard = Arc::default();
        let echo = Echo {
            peer: peer.clone(),
            heard,
        };
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(lines.as_bytes()).await.unwrap();
        let serving = tokio::spawn(async move { serve(&peer, server, limits, &echo).await });
        let mut seen = Vec::new();
        while let Ok(Some(line)) =
            tokio::time::timeout(std::time::Duration::from_millis(300), outbox.next()).await
        {
            seen.push(line);
        }
        drop(client);
        serving.await.unwrap().unwrap();
        seen.sort();
        seen
    }

    const LIMITS: Limits = Limits {
        line: 100_000,
        at_once: 3,
    };

    #[tokio::test]
    async fn what_cannot_be_answered_is_refused_and_the_next_line_is_read() {
        let long = "x".repeat(300_000);
        let lines = format!(
            "nonsense\n{long}\n\n{{\"id\":1,\"method\":\"echo\",\"params\":[1]}}\n{{\"id\":2,\"method\":\"no\"}}\n"
        );
        insta::assert_snapshot!(answers(&lines, LIMITS).await.join("\n"), @r#"
        {"jsonrpc":"2.0","id":1,"result":[1]}
        {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found: no","data":{"method":"no"}}}
        {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a line is longer than 100000 bytes"}}
        {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is not JSON: expected ident at line 1 column 2"}}
        "#);
    }

    #[tokio::test]
    async fn a_request_is_taken_back_and_too_many_are_refused() {
        let hang = |id: u32| format!("{{\"id\":{id},\"method\":\"hang\"}}\n");
        let lines = [
            hang(1),
            hang(2),
            hang(3),
            hang(4),
            "{\"method\":\"$/cancel_request\",\"params\":{\"requestId\":2}}\n".into(),
        ]
        .concat();
        insta::assert_snapshot!(answers(&lines, LIMITS).await.join("\n"), @r#"
        {"jsonrpc":"2.0","id":2,"error":{"code":-32800,"message":"the request was cancelled"}}
        {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"3 requests are being answered already"}}
        "#);
    }

    #[tokio::test]
    async fn both_sides_ask_and_the_end_ends_who_waits() {
        let (peer, mut outbox) = Peer::new(Some("$/cancel_request"));
        let echo = Echo {
            peer: peer.clone(),
            heard: Arc::default(),
        };
        let (mut client, server) = tokio::io::duplex(4096);
        let serving = {
            let peer = peer.clone();
            tokio::spawn(async move { serve(&peer, server, LIMITS, &echo).await })
        };
        let ask = "{\"id\":\"a\",\"method\":\"ask\",\"params\":{\"n\":1}}\n";
        client.write_all(ask.as_bytes()).await.unwrap();
        let asked = outbox.next().await.unwrap();
        assert_eq!(
            asked,
            r#"{"jsonrpc":"2.0","id":1,"method":"back","params":{"n":1}}"#
        );
        client
            .write_all(b"{\"id\":1,\"result\":\"yes\"}\n")
            .await
            .unwrap();
        assert_eq!(
            outbox.next().await.unwrap(),
            r#"{"jsonrpc":"2.0","id":"a","result":"yes"}"#
        );
        // A caller that gives up cancels the request.
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (asking, flag) = (peer.clone(), Dropped(is_dropped.clone()));
        let task = tokio::spawn(async move {
            let _flag = flag;
            asking.request("slow", &json!({})).await
        });
        assert!(outbox.next().await.unwrap().contains("\"slow\""));
        task.abort();
        assert!(outbox.next().await.unwrap().contains("$/cancel_request"));
        assert!(is_dropped.load(Ordering::SeqCst));
        drop(client);
        serving.await.unwrap().unwrap();
        let late = peer.request("late", &json!({})).await;
        assert_eq!(late.unwrap_err().message, "the other side is gone");
    }
}
