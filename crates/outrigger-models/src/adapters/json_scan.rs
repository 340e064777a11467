//! Detects when a JSON object or array that arrives in a stream is complete, in linear time.

/// The scanner. It counts brackets outside strings; whether the text is valid JSON is left to a parser.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonScan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Blank,
    Inside,
    Closed,
    // A number, a word or a string at the top level: it ends only with the stream.
    Scalar,
}

impl JsonScan {
    /// Takes the next piece; returns `true` once the outermost bracket has closed.
    pub(crate) fn feed(&mut self, piece: &str) -> bool {
        for byte in piece.bytes() {
            match self.state {
                State::Blank => match byte {
                    b' ' | b'\t' | b'\n' | b'\r' => {}
                    b'{' | b'[' => {
                        self.state = State::Inside;
                        self.depth = 1;
                    }
                    _ => self.state = State::Scalar,
                },
                State::Inside => self.inside(byte),
                State::Closed | State::Scalar => break,
            }
        }
        self.state == State::Closed
    }

    fn inside(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    self.state = State::Closed;
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a text is one JSON value.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_are_complete_at_their_last_bracket() {
        for (text, complete) in [
            ("{}", true),
            (" {\"a\":\"}\\\"}\"}", true),
            ("{\"a\":\"}\\\"}\"", false),
            ("[1,{}]", true),
            ("12", false),
            ("\"a\"", false),
            ("", false),
        ] {
            assert_eq!(JsonScan::default().feed(text), complete, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_proper_prefix_of_an_object_is_incomplete(
            entries in proptest::collection::btree_map(".{0,6}", ".{0,6}", 0..5),
        ) {
            let text = serde_json::to_string(&entries).unwrap();
            let mut scan = JsonScan::default();
            let mut buffer = [0u8; 4];
            for (at, c) in text.char_indices() {
                let complete = scan.feed(c.encode_utf8(&mut buffer));
                prop_assert_eq!(complete, at + c.len_utf8() == text.len());
            }
        }
    }
}
