//! Messages as lines.

use std::io;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::server::{Backend, Server, error};

/// Maximum bytes of a message.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum number of concurrent requests; further ones wait.
const AT_ONCE: usize = 64;
const PARSE_ERROR: i64 = -32700;

/// Answers the messages of `input` until its end. `print` gets each response with its line end, on a thread that may
/// block.
///
/// # Errors
/// Those of the input, or a message is too long.
pub async fn serve(
    backend: Arc<dyn Backend>,
    mut input: impl AsyncBufRead + Unpin,
    mut print: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<()> {
    let server = Arc::new(Server::new(backend, 0));
    let (sender, mut answers) = mpsc::channel::<Value>(AT_ONCE);
    let writer = tokio::task::spawn_blocking(move || {
        while let Some(answer) = answers.blocking_recv() {
            print(format!("{answer}\n").as_bytes());
        }
    });
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    running.spawn(forward(server.updates(), sender.clone()));
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = (&mut input).take(MAX_BYTES);
        let read = limited.read_until(b'\n', &mut line).await?;
        if read == 0 {
            break;
        }
        if line.last() != Some(&b'\n') && line.len() as u64 >= MAX_BYTES {
            return Err(io::Error::other("a message is too long"));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            let refusal = error(&Value::Null, PARSE_ERROR, "the message is not JSON");
            let _ = sender.send(refusal).await;
            continue;
        };
        // Notifications and responses are handled at once: they may end a request that occupies a slot.
        let is_request = message.get("id").is_some() && message.get("method").is_some();
        let mut slot = None;
        if is_request {
            slot = Arc::clone(&slots).acquire_owned().await.ok();
        }
        let (server, sender) = (Arc::clone(&server), sender.clone());
        let answer = async move {
            if let Some(answer) = server.answer(message, &sender).await {
                let _ = sender.send(answer).await;
            }
            drop(slot);
        };
        if is_request {
            running.spawn(answer);
        } else {
            answer.await;
        }
        while running.try_join_next().is_some() {}
    }
    // The client is gone; its requests are cancelled.
    running.shutdown().await;
    drop(sender);
    let _ = writer.await;
    Ok(())
}

/// Sends change notifications while the client is connected.
async fn forward(mut updates: BoxStream<'static, Value>, sender: mpsc::Sender<Value>) {
    while let Some(update) = updates.next().await {
        if sender.send(update).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tests::{Echo, request};
    use serde_json::json;
    use tokio::io::AsyncWriteExt as _;

    #[tokio::test]
    async fn lines_are_answered_until_the_input_ends() {
        let (mut client, server) = tokio::io::duplex(4096);
        let (sender, mut printed) = mpsc::unbounded_channel();
        let input = tokio::io::BufReader::new(server);
        let print = move |line: &[u8]| {
            let _ = sender.send(String::from_utf8_lossy(line).into_owned());
        };
        let task = tokio::spawn(serve(Arc::new(Echo), input, print));
        let hang = request(1, "tools/call", json!({"name": "hang"}));
        let text = format!("no JSON\n\n{hang}\n{}\n", request(2, "ping", json!({})));
        client.write_all(text.as_bytes()).await.unwrap();
        let lines = [printed.recv().await.unwrap(), printed.recv().await.unwrap()];
        assert!(lines[0].contains("the message is not JSON"), "{lines:?}");
        assert!(lines[1].contains(r#""id":2"#), "{lines:?}");
        // A hanging request is cancelled when the client is gone.
        drop(client);
        task.await.unwrap().unwrap();
        assert_eq!(printed.recv().await, None);
    }
}
