//! Messages on a stream: a header with `Content-Length`, an empty line, a JSON body.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum bytes of a message.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// Maximum bytes of a header; also the maximum of output that is not a message.
const MAX_HEADER: usize = 64 * 1024;
const CHUNK: usize = 16 * 1024;

/// Encodes a message.
pub(crate) fn frame(body: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads messages; holds at most one in memory.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    from: R,
    held: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from,
            held: Vec::new(),
        }
    }

    /// Returns the body of the next message; `None` at the end of the stream.
    ///
    /// # Errors
    /// Those of the stream, and `InvalidData` for an invalid or too large header.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (header, length) = loop {
            if let Some(end) = end_of_header(&self.held) {
                let length = length(self.held.get(..end).unwrap_or_default())?;
                break (end, length);
            }
            if self.held.len() > MAX_HEADER {
                return Err(invalid("its header has no end"));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        };
        if length > MAX_BODY {
            return Err(invalid("a message of more than 32 MiB"));
        }
        while self.held.len() < header + length {
            if !self.fill().await? {
                return Ok(None);
            }
        }
        let rest = self.held.split_off(header + length);
        let mut body = std::mem::replace(&mut self.held, rest);
        body.drain(..header);
        Ok(Some(body))
    }

    async fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = [0; CHUNK];
        let read = self.from.read(&mut chunk).await?;
        self.held
            .extend_from_slice(chunk.get(..read).unwrap_or_default());
        Ok(read > 0)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn end_of_header(held: &[u8]) -> Option<usize> {
    held.get(..held.len().min(MAX_HEADER))?
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

// Text that a server prints before a header (a banner) is skipped, if it ends with a line.
fn length(header: &[u8]) -> io::Result<usize> {
    let text = String::from_utf8_lossy(header);
    text.lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim()
                .eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().ok())?
        })
        .ok_or_else(|| invalid("a header without Content-Length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a stream that gives this many bytes at a time.
    fn pieces(bytes: Vec<u8>, size: usize) -> impl AsyncRead + Unpin {
        let (mut to, from) = tokio::io::duplex(size.max(1));
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt as _;
            let _ = to.write_all(&bytes).await;
        });
        from
    }

    #[tokio::test]
    async fn messages_arrive_however_they_are_cut() {
        let mut bytes = b"starting up ...\n".to_vec();
        for body in ["{}", "", r#"{"a":"grün"}"#] {
            bytes.extend(frame(body));
        }
        bytes.extend(b"content-length:2\r\nContent-Type: x\r\n\r\n[]");
        for size in 1..40 {
            let mut frames = Frames::new(pieces(bytes.clone(), size));
            let mut seen = Vec::new();
            while let Some(body) = frames.next().await.unwrap() {
                seen.push(String::from_utf8(body).unwrap());
            }
            assert_eq!(seen, ["{}", "", r#"{"a":"grün"}"#, "[]"], "{size}");
        }
    }

    #[tokio::test]
    async fn what_is_no_message_is_an_error_and_costs_no_memory() {
        for (bytes, says) in [
            (b"X: 1\r\n\r\n".to_vec(), "without Content-Length"),
            (
                b"Content-Length: x\r\n\r\n".to_vec(),
                "without Content-Length",
            ),
            (b"Content-Length: 99999999\r\n\r\n".to_vec(), "32 MiB"),
            (vec![b'a'; 1_000_000], "no end"),
        ] {
            let error = Frames::new(pieces(bytes, 4096)).next().await.unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
        let cut = b"Content-Length: 10\r\n\r\nabc".to_vec();
        assert_eq!(Frames::new(pieces(cut, 8)).next().await.unwrap(), None);
    }
}
