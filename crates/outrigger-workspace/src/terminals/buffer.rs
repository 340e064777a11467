//! The output of a terminal: decoded, and kept up to a limit.

/// UTF-16 units kept for later clients, as in OpenCode.
const KEPT: u64 = 2 * 1024 * 1024;
/// How far the buffer grows beyond that before it is trimmed, so that not every piece moves two megabytes.
const SLACK: u64 = 256 * 1024;

/// The end of a text, with positions counted in UTF-16 units from its start, as in JavaScript clients.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    /// Position of the first kept character.
    start: u64,
    /// Position after the last one.
    end: u64,
}

impl Buffer {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.end += units(text);
        if self.end - self.start > KEPT + SLACK {
            let (byte, place) = self.find(self.end - KEPT);
            self.text.drain(..byte);
            self.start = place;
        }
    }

    /// Returns the position after the last character.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the kept text from a position on; empty beyond the end.
    pub(super) fn since(&self, place: u64) -> &str {
        let (byte, _) = self.find(place);
        self.text.get(byte..).unwrap_or_default()
    }

    /// Returns the first character at or after a position: its byte and its position.
    fn find(&self, place: u64) -> (usize, u64) {
        let mut at = self.start;
        for (byte, letter) in self.text.char_indices() {
            if at >= place {
                return (byte, at);
            }
            at += letter.len_utf16() as u64;
        }
        (self.text.len(), at)
    }
}

fn units(text: &str) -> u64 {
    text.chars().map(|letter| letter.len_utf16() as u64).sum()
}

/// Decodes bytes that arrive in pieces: an incomplete character waits for its rest.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.held.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(good) => {
                    text.push_str(good);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(good));
                    let Some(len) = error.error_len() else {
                        rest = bad;
                        break;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = bad.get(len..).unwrap_or_default();
                }
            }
        }
        self.held = rest.to_vec();
        text
    }

    /// Returns the rest of an incomplete character.
    pub(super) fn end(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_clients_count() {
        let mut buffer = Buffer::default();
        buffer.push("a\u{e9}");
        buffer.push("\u{1f600}b");
        assert_eq!(buffer.end(), 5);
        for (place, want) in [
            (0, "a\u{e9}\u{1f600}b"),
            (2, "\u{1f600}b"),
            (3, "b"),
            (4, "b"),
            (5, ""),
            (9, ""),
        ] {
            assert_eq!(buffer.since(place), want, "{place}");
        }
    }

    #[test]
    fn only_the_end_is_kept() {
        let mut buffer = Buffer::default();
        let piece = "0123456789abcdef".repeat(4096);
        for _ in 0..64 {
            buffer.push(&piece);
        }
        assert_eq!(buffer.end(), 64 * 65_536);
        let kept = buffer.since(0).len() as u64;
        assert!((KEPT..=KEPT + SLACK).contains(&kept), "{kept}");
        assert_eq!(buffer.since(buffer.end() - 3), "def");
    }

    #[test]
    fn letters_survive_being_cut_in_two() {
        let text = "h\u{e9}\u{1f600}\r\n\u{20ac}";
        for size in 1..=text.len() {
            let mut decoder = Decoder::default();
            let mut seen: String = text
                .as_bytes()
                .chunks(size)
                .map(|piece| decoder.push(piece))
                .collect();
            seen.push_str(&decoder.end());
            assert_eq!(seen, text, "pieces of {size}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"a\xffb\xe2\x82"), "a\u{fffd}b");
        assert_eq!(decoder.end(), "\u{fffd}");
    }
}
