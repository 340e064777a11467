//! Lines of a process, each within a limit.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(String),
    /// It was longer than the limit: its beginning, and how long it was.
    Cut {
        start: String,
        bytes: usize,
    },
}

/// Bytes of a line that is too long that are kept.
const KEPT: usize = 2048;

/// Reads lines; what was read of one is kept when the future is dropped.
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
    /// Bytes of the line that were not kept.
    over: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader,
            limit,
            line: Vec::new(),
            over: 0,
        }
    }

    /// The next one; none at the end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                let is_over = self.line.is_empty() && self.over == 0;
                return Ok((!is_over).then(|| self.take()));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(available.len());
            let room = self.limit.saturating_sub(self.line.len()).min(taken);
            self.line.extend(available.iter().take(room));
            self.over += taken - room;
            let used = end.map_or(taken, |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let bytes = self.line.len() + self.over;
        let is_cut = self.over > 0;
        self.over = 0;
        if is_cut {
            self.line.truncate(KEPT);
        }
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end_matches('\r').to_owned();
        self.line = Vec::new();
        match is_cut {
            true => Line::Cut { start: text, bytes },
            false => Line::Whole(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_is_whole() {
        let text = format!("one\r\n{}\nthree", "x".repeat(10_000));
        let mut lines = Lines::new(text.as_bytes(), 4096);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole("one".into())));
        let cut = lines.next().await.unwrap().unwrap();
        let start = "x".repeat(KEPT);
        assert_eq!(
            cut,
            Line::Cut {
                start,
                bytes: 10_000
            }
        );
        assert_eq!(
            lines.next().await.unwrap(),
            Some(Line::Whole("three".into()))
        );
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
