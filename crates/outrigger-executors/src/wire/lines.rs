//! Lines of a process; of one that is too long, only the start and its length.

use tokio::io::AsyncRead;

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(String),
    /// It exceeded the limit: its start, and its length.
    Cut {
        start: String,
        bytes: usize,
    },
}

/// Bytes kept of a line that is too long.
const KEPT: usize = 2048;

/// Reads lines; a partially read one is kept if the future is dropped.
pub(crate) struct Lines<R> {
    pieces: outrigger_jsonrpc::Lines<R>,
    /// The current line, if it is too long.
    cut: Option<(String, usize)>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(from: R, limit: usize) -> Self {
        Self {
            pieces: outrigger_jsonrpc::Lines::new(from, limit),
            cut: None,
        }
    }

    /// Returns the next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let Some(piece) = self.pieces.next().await? else {
                return Ok(self.ended());
            };
            let bytes = piece.bytes.len();
            match (&mut self.cut, piece.whole) {
                (None, true) => return Ok(Some(Line::Whole(text(&piece.bytes)))),
                (None, false) => {
                    let start = piece.bytes.get(..KEPT).unwrap_or(&piece.bytes);
                    self.cut = Some((text(start), bytes));
                }
                (Some((_, all)), is_end) => {
                    *all += bytes;
                    if is_end {
                        return Ok(self.ended());
                    }
                }
            }
        }
    }

    fn ended(&mut self) -> Option<Line> {
        let (start, bytes) = self.cut.take()?;
        Some(Line::Cut { start, bytes })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_is_whole() {
        let long = 1_000_000;
        let text = format!("one\r\n{}\nthree", "x".repeat(long));
        let mut lines = Lines::new(text.as_bytes(), 4096);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(line);
        }
        let cut = Line::Cut {
            start: "x".repeat(KEPT),
            bytes: long,
        };
        let whole = |text: &str| Line::Whole(text.to_owned());
        assert_eq!(seen, [whole("one"), cut, whole("three")]);
        let endless = "x".repeat(long);
        let mut lines = Lines::new(endless.as_bytes(), 4096);
        let cut = lines.next().await.unwrap();
        assert!(matches!(cut, Some(Line::Cut { bytes, .. }) if bytes == long));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
