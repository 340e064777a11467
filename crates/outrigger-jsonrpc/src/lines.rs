//! Reads lines from a stream, with a limit on their length.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

const CHUNK: usize = 64 * 1024;

/// A line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its content.
    pub bytes: Vec<u8>,
    /// False for the start of a line longer than the limit; the rest follows as further lines.
    pub whole: bool,
}

/// Reads lines of at most `most` bytes, so that no more is held in memory.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    most: usize,
    held: Vec<u8>,
    start: usize,
    searched: usize,
    chunk: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader of a stream.
    pub fn new(from: R, most: usize) -> Self {
        Self {
            from,
            most,
            held: Vec::new(),
            start: 0,
            searched: 0,
            chunk: vec![0; CHUNK],
        }
    }

    /// Returns the next line; `None` at the end. May be dropped and called again.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(at) = self.held[self.searched..].iter().position(|b| *b == b'\n') {
                let end = self.searched + at;
                return Ok(Some(self.take(end, end + 1, true)));
            }
            self.searched = self.held.len();
            if self.searched - self.start > self.most {
                return Ok(Some(self.take(self.searched, self.searched, false)));
            }
            self.compact();
            let read = self.from.read(&mut self.chunk).await?;
            if read == 0 {
                let left = self.searched > self.start;
                return Ok(left.then(|| self.take(self.searched, self.searched, true)));
            }
            self.held.extend_from_slice(&self.chunk[..read]);
        }
    }

    fn take(&mut self, end: usize, next: usize, whole: bool) -> Line {
        let mut bytes = self.held[self.start..end].to_vec();
        if whole && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        (self.start, self.searched) = (next, next);
        Line { bytes, whole }
    }

    // Only before more is read, so that a chunk of many short lines is moved once.
    fn compact(&mut self) {
        self.held.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], most: usize) -> Vec<(String, bool)> {
        let mut lines = Lines::new(text, most);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push((String::from_utf8(line.bytes).unwrap(), line.whole));
        }
        seen
    }

    #[tokio::test]
    async fn lines_end_as_they_may_and_long_ones_come_in_pieces() {
        let whole = |text: &str| (text.to_owned(), true);
        assert_eq!(
            all(b"a\r\n\nb", 10).await,
            [whole("a"), whole(""), whole("b")]
        );
        assert_eq!(all(b"", 10).await, []);
        let long = vec![b'x'; CHUNK * 3];
        let pieces = all(&long, CHUNK).await;
        assert_eq!(
            pieces.iter().map(|(text, _)| text.len()).sum::<usize>(),
            long.len()
        );
        assert!(pieces.len() == 2 && !pieces[0].1, "{}", pieces.len());
    }
}
