//! Messages over a pipe: each ends with a NUL byte.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::{Incoming, MAX_MESSAGE, Wire};

/// Reads and writes until one end closes.
pub(crate) fn over_pipe(stream: UnixStream, wire: Wire) {
    let (reader, mut writer) = stream.into_split();
    let Wire {
        mut outgoing,
        incoming,
    } = wire;
    tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            if message.is_empty() {
                return;
            }
            let mut bytes = message.into_bytes();
            bytes.push(0);
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let cause = read(reader, &incoming).await;
        incoming.close(cause);
    });
}

/// Why reading stopped.
async fn read(mut reader: tokio::net::unix::OwnedReadHalf, incoming: &Incoming) -> String {
    let mut buffer: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 256 * 1024];
    loop {
        let count = match reader.read(&mut chunk).await {
            Ok(0) => return "has ended".to_owned(),
            Ok(count) => count,
            Err(error) => return format!("has ended ({error})"),
        };
        let mut rest = chunk.get(..count).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let (message, after) = rest.split_at(end);
            buffer.extend_from_slice(message);
            if let Err(cause) = incoming.take(&buffer) {
                return cause;
            }
            buffer.clear();
            rest = after.get(1..).unwrap_or_default();
        }
        if buffer.len() + rest.len() > MAX_MESSAGE {
            return format!("sent a message of more than {MAX_MESSAGE} bytes");
        }
        buffer.extend_from_slice(rest);
    }
}
