//! Server-sent events: their names and data.

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// What `event:` says; `message` where nothing is said.
    pub(crate) name: String,
    /// The lines of `data:`.
    pub(crate) data: String,
}

/// Cuts a stream into its events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    held: Vec<u8>,
    searched: usize,
    name: Option<String>,
    data: String,
    any: bool,
}

impl Events {
    /// Takes more of the stream; returns the events that it completes. One without data is none.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.held.extend_from_slice(bytes);
        let mut complete = Vec::new();
        let mut start = 0;
        while let Some(at) = self.held[self.searched..].iter().position(|b| *b == b'\n') {
            let end = self.searched + at;
            let line = self.held[start..end]
                .strip_suffix(b"\r")
                .unwrap_or(&self.held[start..end]);
            let line = String::from_utf8_lossy(line).into_owned();
            (start, self.searched) = (end + 1, end + 1);
            if line.is_empty() {
                let name = self.name.take();
                if std::mem::take(&mut self.any) {
                    complete.push(Event {
                        name: name.unwrap_or_else(|| "message".to_owned()),
                        data: std::mem::take(&mut self.data),
                    });
                }
            } else if let Some(name) = line.strip_prefix("event:") {
                self.name = Some(name.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data:") {
                if self.any {
                    self.data.push('\n');
                }
                self.any = true;
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        self.held.drain(..start);
        self.searched = self.held.len();
        complete
    }

    /// Bytes of the event that is not complete.
    pub(crate) fn held(&self) -> usize {
        self.held.len() + self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_may_come_in_any_pieces() {
        let text = "\u{feff}: hello\nevent: note\r\ndata: {\"a\":1}\r\n\r\ndata:x\ndata: y\n\nid: 1\n\ndata: left";
        let mut whole = Events::default();
        let event = |name: &str, data: &str| Event {
            name: name.into(),
            data: data.into(),
        };
        let expected = [event("note", "{\"a\":1}"), event("message", "x\ny")];
        assert_eq!(whole.feed(text.as_bytes()), expected);
        assert_eq!(whole.held(), "data: left".len());
        let mut pieces = Events::default();
        let got: Vec<Event> = text
            .as_bytes()
            .iter()
            .flat_map(|b| pieces.feed(&[*b]))
            .collect();
        assert_eq!(got, expected);
    }
}
