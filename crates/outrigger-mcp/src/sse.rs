//! Server-sent events, of which only the data count here.

/// Cuts a stream into the data of its events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    held: Vec<u8>,
    searched: usize,
    data: String,
    any: bool,
}

impl Events {
    /// Takes more of the stream; returns the data of the events that it completes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
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
                if std::mem::take(&mut self.any) {
                    complete.push(std::mem::take(&mut self.data));
                }
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
        let text = "\u{feff}: hello\nevent: message\r\ndata: {\"a\":1}\r\n\r\ndata:x\ndata: y\n\nid: 1\n\ndata: left";
        let mut whole = Events::default();
        let expected = ["{\"a\":1}", "x\ny"];
        assert_eq!(whole.feed(text.as_bytes()), expected);
        assert_eq!(whole.held(), "data: left".len());
        let mut pieces = Events::default();
        let got: Vec<String> = text
            .as_bytes()
            .iter()
            .flat_map(|b| pieces.feed(&[*b]))
            .collect();
        assert_eq!(got, expected);
    }
}
