//! An incremental parser for `text/event-stream`, as the WHATWG HTML standard defines it (section 9.2.6).
//!
//! Law (property test): the events do not depend on how the bytes were cut into chunks.

/// One event of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Value of the last `event:` line, empty when there was none.
    pub(crate) name: String,
    /// The `data:` lines, joined by newlines.
    pub(crate) data: String,
}

/// A line may not be longer than this; a stream that exceeds it is not an event stream.
pub(crate) const MAX_LINE: usize = 32 * 1024 * 1024;

/// The parser. Bytes in, events out.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    // The line ended with CR; a LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
}

impl SseParser {
    /// Takes the next bytes and adds the events that they complete to `out`. False when a line is longer than
    /// [`MAX_LINE`].
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<SseEvent>) -> bool {
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
                return self.line.len() <= MAX_LINE;
            };
            let (head, tail) = rest.split_at(end);
            self.line.extend_from_slice(head);
            self.after_cr = tail.first() == Some(&b'\r');
            rest = tail.get(1..).unwrap_or_default();
            self.end_line(out);
        }
        true
    }

    /// The stream has ended. Unlike the standard's, an event without its empty line counts: servers that close right
    /// after the last `data:` line exist.
    pub(crate) fn finish(&mut self, out: &mut Vec<SseEvent>) {
        if !self.line.is_empty() {
            self.end_line(out);
        }
        self.dispatch(out);
    }

    fn end_line(&mut self, out: &mut Vec<SseEvent>) {
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
                // A comment (empty field), `id`, `retry` and unknown fields say nothing to us.
                _ => {}
            }
        }
        // Keeps the allocation for the next line.
        self.line = bytes;
        self.line.clear();
    }

    fn dispatch(&mut self, out: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            out.push(SseEvent {
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

    fn parse(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut out = Vec::new();
        for chunk in chunks {
            assert!(parser.feed(chunk, &mut out));
        }
        parser.finish(&mut out);
        out
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
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
            let want: Vec<SseEvent> = want.iter().map(|(n, d)| event(n, d)).collect();
            let bytes = text.as_bytes();
            for cut in 0..=bytes.len() {
                let (a, b) = bytes.split_at(cut);
                assert_eq!(parse(&[a, b]), want, "{text:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(parse(&single), want, "{text:?} byte by byte");
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
