//! The parser of `application/vnd.amazon.eventstream`, AWS's event framing: lengths, headers, a payload, and two checksums (CRC
//! 32). A payload becomes an event with the name in its `:event-type`.

use outrigger_sse::Event;

/// Bytes of a frame besides headers and payload: two lengths, their checksum, and that of the frame.
const OVERHEAD: usize = 16;
/// The two lengths and their checksum.
const PRELUDE: usize = 12;

/// The parser. Bytes in, events out.
#[derive(Debug)]
pub(crate) struct EventStream {
    limit: usize,
    bytes: Vec<u8>,
}

impl EventStream {
    /// Creates a parser of frames of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bytes: Vec::new(),
        }
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// What is wrong with them; nothing after it can be read.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), String> {
        self.bytes.extend_from_slice(bytes);
        while let Some(length) = self.next_length()? {
            let frame: Vec<u8> = self.bytes.drain(..length).collect();
            out.push(event(&frame)?);
        }
        Ok(())
    }

    /// Returns the length of the next frame, once it is complete.
    fn next_length(&self) -> Result<Option<usize>, String> {
        let Some(prelude) = self.bytes.get(..PRELUDE) else {
            return Ok(None);
        };
        let lengths = prelude.get(..8).unwrap_or_default();
        if number(prelude, 8) != Some(crc32(lengths)) {
            return Err("the checksum of a frame's head is wrong".to_owned());
        }
        let length = number(prelude, 0).map_or(0, |it| it as usize);
        if length < OVERHEAD || length > self.limit {
            return Err(format!("a frame of {length} bytes"));
        }
        Ok((self.bytes.len() >= length).then_some(length))
    }
}

fn event(frame: &[u8]) -> Result<Event, String> {
    let cut = || "a frame is cut off".to_owned();
    let end = frame.len().checked_sub(4).ok_or_else(cut)?;
    let covered = frame.get(..end).ok_or_else(cut)?;
    if number(frame, end) != Some(crc32(covered)) {
        return Err("the checksum of a frame is wrong".to_owned());
    }
    let headers_length = number(frame, 4).ok_or_else(cut)? as usize;
    let payload_at = PRELUDE.checked_add(headers_length).ok_or_else(cut)?;
    let headers = covered.get(PRELUDE..payload_at).ok_or_else(cut)?;
    let payload = covered.get(payload_at..).ok_or_else(cut)?;
    let kinds = [":event-type", ":exception-type", ":error-code"];
    let mut name = String::new();
    for (key, value) in texts(headers).ok_or_else(cut)? {
        if kinds.contains(&key.as_str()) {
            name = value;
        }
    }
    Ok(Event {
        name,
        data: String::from_utf8_lossy(payload).into_owned(),
    })
}

/// Returns the text headers.
fn texts(mut rest: &[u8]) -> Option<Vec<(String, String)>> {
    let mut out = Vec::new();
    while let Some((&length, after)) = rest.split_first() {
        let (name, after) = after.split_at_checked(length.into())?;
        let (&kind, after) = after.split_first()?;
        let fixed = match kind {
            0 | 1 => Some(0),
            2 => Some(1),
            3 => Some(2),
            4 => Some(4),
            5 | 8 => Some(8),
            9 => Some(16),
            6 | 7 => None,
            _ => return None,
        };
        let (length, after) = match fixed {
            Some(length) => (length, after),
            None => {
                let (length, after) = after.split_at_checked(2)?;
                let length = <[u8; 2]>::try_from(length).ok()?;
                (u16::from_be_bytes(length).into(), after)
            }
        };
        let (value, after) = after.split_at_checked(length)?;
        if kind == 7 {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            out.push((text(name), text(value)));
        }
        rest = after;
    }
    Some(out)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// Returns the checksum of IEEE 802.3.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let mask = (crc & 1).wrapping_neg();
            crc = (crc >> 1) ^ (0xedb8_8320 & mask);
        }
    }
    !crc
}

/// Creates a frame with this type and payload, for tests.
#[cfg(test)]
pub(crate) fn frame(kind: &str, name: &str, payload: &str) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let mut out = vec![u8::try_from(name.len()).unwrap()];
        out.extend_from_slice(name.as_bytes());
        out.push(7);
        out.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        out.extend_from_slice(value.as_bytes());
        out
    };
    let headers = [
        header(kind, name),
        header(":content-type", "application/json"),
    ]
    .concat();
    let size = |n: usize| u32::try_from(n).unwrap().to_be_bytes();
    let mut out = size(OVERHEAD + headers.len() + payload.len()).to_vec();
    out.extend_from_slice(&size(headers.len()));
    out.extend_from_slice(&crc32(&out).to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32(&out).to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_do_not_depend_on_how_the_bytes_were_cut() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes = [
            frame(":event-type", "messageStart", r#"{"role":"assistant"}"#),
            frame(
                ":exception-type",
                "throttlingException",
                r#"{"message":"slow"}"#,
            ),
            frame(":event-type", "empty", ""),
        ]
        .concat();
        for piece in [1, 7, bytes.len()] {
            let mut parser = EventStream::new(1024);
            let mut out = Vec::new();
            for piece in bytes.chunks(piece) {
                parser.feed(piece, &mut out).unwrap();
            }
            let got: Vec<(&str, &str)> = out.iter().map(|e| (&*e.name, &*e.data)).collect();
            assert_eq!(
                got,
                [
                    ("messageStart", r#"{"role":"assistant"}"#),
                    ("throttlingException", r#"{"message":"slow"}"#),
                    ("empty", "")
                ]
            );
        }
    }

    #[test]
    fn what_is_broken_is_an_error_and_no_panic() {
        let good = frame(":event-type", "a", "{}");
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x41;
            let mut out = Vec::new();
            let fed = EventStream::new(1024).feed(&bytes, &mut out);
            assert!(fed.is_err() || out.is_empty(), "byte {at}");
        }
        assert!(EventStream::new(20).feed(&good, &mut Vec::new()).is_err());
    }
}
