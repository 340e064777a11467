//! An incremental parser for `text/event-stream`, as the WHATWG HTML standard defines it (section 9.2.6).
//!
//! ```
//! use outrigger_sse::Parser;
//!
//! let mut parser = Parser::new(1024);
//! let mut events = Vec::new();
//! parser.feed(b"event: greeting\ndata: hel", &mut events)?;
//! parser.feed(b"lo\n\n", &mut events)?;
//! assert_eq!(events[0].name, "greeting");
//! assert_eq!(events[0].data, "hello");
//! # Ok::<(), outrigger_sse::TooLong>(())
//! ```
//!
//! Law (property test): the events do not depend on how the bytes were cut into chunks.

use std::fmt;
use std::time::Duration;

/// One event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Value of the last `event:` line; empty if there was none.
    pub name: String,
    /// The `data:` lines, joined by newlines.
    pub data: String,
}

/// An event exceeds the parser's limit. Nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Bytes.
    pub limit: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a server-sent event is longer than {} MiB",
            self.limit >> 20
        )
    }
}

impl std::error::Error for TooLong {}

/// The parser. Bytes in, events out.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    // The last `id:` line; it takes effect once its event is complete.
    named_id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    // The line ended with CR; a following LF belongs to it.
    after_cr: bool,
    begun: bool,
}

impl Parser {
    /// Creates a parser of events of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: String::new(),
            data: String::new(),
            has_data: false,
            named_id: None,
            last_id: None,
            retry: None,
            after_cr: false,
            begun: false,
        }
    }

    /// Parses the next bytes and appends completed events to `out`.
    ///
    /// # Errors
    /// [`TooLong`]: the current event exceeds the limit.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), TooLong> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if let [b'\n', tail @ ..] = rest {
                    rest = tail;
                    continue;
                }
            }
            let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                return self.check();
            };
            let (head, tail) = rest.split_at(end);
            self.line.extend_from_slice(head);
            self.after_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            self.end_line(out);
            self.check()?;
        }
        Ok(())
    }

    /// Returns the identifier of the last complete event, from which a stream can be resumed (`Last-Event-ID`).
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns how long to wait before reopening the stream, if it specifies that.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn check(&self) -> Result<(), TooLong> {
        let id = self.named_id.as_ref().map_or(0, String::len);
        let held = self.line.len() + self.name.len() + self.data.len() + id;
        if held > self.limit {
            Err(TooLong { limit: self.limit })
        } else {
            Ok(())
        }
    }

    /// Ends the stream. Unlike in the standard, an event without its empty line is returned: some servers close
    /// right after the last `data:` line.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        if !self.line.is_empty() {
            self.end_line(out);
        }
        self.dispatch(out);
    }

    fn end_line(&mut self, out: &mut Vec<Event>) {
        let bytes = std::mem::take(&mut self.line);
        let mut text = String::from_utf8_lossy(&bytes);
        if !self.begun {
            self.begun = true;
            if let Some(stripped) = text.strip_prefix('\u{feff}') {
                text = stripped.to_owned().into();
            }
        }
        if text.is_empty() {
            self.dispatch(out);
        } else {
            let (field, value) = text.split_once(':').unwrap_or((&text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut self.name),
                "data" => {
                    if self.has_data {
                        self.data.push('\n');
                    }
                    self.has_data = true;
                    self.data.push_str(value);
                }
                "id" if !value.contains('\0') => self.named_id = Some(value.to_owned()),
                "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                    self.retry = value.parse().ok().map(Duration::from_millis);
                }
                // Comments (empty field) and unknown fields are ignored.
                _ => {}
            }
        }
        // Keeps the allocation for the next line.
        self.line = bytes;
        self.line.clear();
    }

    fn dispatch(&mut self, out: &mut Vec<Event>) {
        let name = std::mem::take(&mut self.name);
        if let Some(id) = self.named_id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        if std::mem::take(&mut self.has_data) {
            out.push(Event {
                name,
                data: std::mem::take(&mut self.data),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(chunks: &[&[u8]]) -> Vec<Event> {
        let mut parser = Parser::new(1024);
        let mut out = Vec::new();
        for chunk in chunks {
            parser.feed(chunk, &mut out).unwrap();
        }
        parser.finish(&mut out);
        out
    }

    fn event(name: &str, data: &str) -> Event {
        Event {
            name: name.into(),
            data: data.into(),
        }
    }

    #[test]
    fn what_resumes_a_stream_is_kept() {
        let mut parser = Parser::new(1024);
        let mut out = Vec::new();
        parser
            .feed(b"id: 1\nretry: 500\ndata: \n\n", &mut out)
            .unwrap();
        assert_eq!(parser.last_event_id(), Some("1"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(500)));
        // An incomplete event is not returned, and an invalid number of milliseconds is ignored.
        parser.feed(b"retry: 5s\nid: 2\ndata: a", &mut out).unwrap();
        assert_eq!(parser.last_event_id(), Some("1"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(500)));
        parser.feed(b"\n\nid\n\n", &mut out).unwrap();
        assert_eq!(parser.last_event_id(), None);
    }

    #[test]
    fn streams_and_their_events_however_they_are_cut() {
        let table: &[(&str, &[(&str, &str)])] = &[
            ("data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")]),
            (
                "data: a\r\n\r\ndata: b\r\rdata: c\n\n",
                &[("", "a"), ("", "b"), ("", "c")],
            ),
            ("event: ping\ndata: {}\n\n", &[("ping", "{}")]),
            ("data: a\ndata:  b\n\n", &[("", "a\n b")]),
            (": keep-alive\n\ndata: a\n\n", &[("", "a")]),
            ("event: lost\n\ndata: a\n\n", &[("", "a")]),
            (
                "\u{feff}data: \u{e9}\u{1f600}\n\n",
                &[("", "\u{e9}\u{1f600}")],
            ),
            ("data\n\n", &[("", "")]),
            ("data: no end", &[("", "no end")]),
            ("id: 1\nretry: 5\ndata: a:b\n\n", &[("", "a:b")]),
            ("", &[]),
        ];
        for (text, want) in table {
            let want: Vec<Event> = want.iter().map(|(n, d)| event(n, d)).collect();
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                let (a, b) = bytes.split_at(cut);
                assert_eq!(parse(&[a, b]), want, "{text:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&single), want, "{text:?} byte by byte");
        }
    }

    #[test]
    fn an_event_over_the_limit_ends_the_stream_wherever_it_grows() {
        let long = "x".repeat(40);
        for (text, fits) in [
            (format!("data: {long}\n\n"), false),
            (format!("data: {long}"), false),
            ("data: 12345678\n".repeat(5), false),
            (format!("event: {long}\ndata\n\n"), false),
            ("data: 12345678\n\n".repeat(50), true),
        ] {
            let mut parser = Parser::new(32);
            let mut out = Vec::new();
            let fed = parser.feed(text.as_bytes(), &mut out);
            assert_eq!(fed.is_ok(), fits, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            text in "(data: ?|event: ?|:|\r|\n|\r\n|[a-z\u{e9}\u{1f600}]|\u{feff}){0,60}",
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(parse(&chunks), parse(&[bytes]));
        }
    }
}
