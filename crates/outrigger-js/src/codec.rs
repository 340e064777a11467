//! Frames: a 4-byte big-endian length, then that many bytes of JSON.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use outrigger_protocol::rpc::MAX_FRAME;
use serde::Serialize;

use crate::error::JsError;

const HEADER: usize = 4;
/// A frame larger than this does not leave its memory to the next one.
const LARGE: usize = 1 << 20;

/// Makes a frame of `message`.
///
/// # Errors
/// [`JsError::FrameTooLarge`] over [`MAX_FRAME`]; [`JsError::BadFrame`] when the value has no JSON form.
pub fn encode<T: Serialize>(message: &T) -> Result<Bytes, JsError> {
    let mut frame = BytesMut::with_capacity(256);
    frame.put_u32(0);
    serde_json::to_writer((&mut frame).writer(), message).map_err(|error| JsError::BadFrame {
        reason: error.to_string(),
    })?;
    let size = frame.len() - HEADER;
    let length = u32::try_from(size).ok().filter(|_| size <= MAX_FRAME);
    let Some(length) = length else {
        return Err(JsError::FrameTooLarge {
            size,
            max: MAX_FRAME,
        });
    };
    if let Some(header) = frame.get_mut(..HEADER) {
        header.copy_from_slice(&length.to_be_bytes());
    }
    Ok(frame.freeze())
}

/// Makes a frame of a request whose parameters are JSON already, in pieces.
///
/// # Errors
/// [`JsError::FrameTooLarge`] over [`MAX_FRAME`].
pub(crate) fn encode_call(id: u64, method: &str, params: &[&[u8]]) -> Result<Bytes, JsError> {
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":");
    let size = head.len() + params.iter().map(|part| part.len()).sum::<usize>() + 1;
    let length = u32::try_from(size).ok().filter(|_| size <= MAX_FRAME);
    let Some(length) = length else {
        return Err(JsError::FrameTooLarge {
            size,
            max: MAX_FRAME,
        });
    };
    let mut frame = BytesMut::with_capacity(HEADER + size);
    frame.put_u32(length);
    frame.put_slice(head.as_bytes());
    params.iter().for_each(|part| frame.put_slice(part));
    frame.put_u8(b'}');
    Ok(frame.freeze())
}

/// Assembles frames from a stream that may be cut anywhere.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    /// Returns the buffer for the next bytes of the stream; it has room for at least one read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        // A large frame is read into memory that is allocated once instead of doubled repeatedly.
        let missing = self.wanted().saturating_sub(self.buffer.len());
        self.buffer
            .reserve(missing.clamp(64 * 1024, MAX_FRAME + HEADER));
        &mut self.buffer
    }

    /// The next whole frame without its length, or `None` until more has come.
    ///
    /// # Errors
    /// [`JsError::FrameTooLarge`] when a length over [`MAX_FRAME`] is announced; the stream is of no use after that.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, JsError> {
        let Some(size) = self.announced() else {
            return Ok(None);
        };
        if size > MAX_FRAME {
            return Err(JsError::FrameTooLarge {
                size,
                max: MAX_FRAME,
            });
        }
        if self.buffer.len() < HEADER + size {
            return Ok(None);
        }
        self.buffer.advance(HEADER);
        let frame = self.buffer.split_to(size).freeze();
        if size > LARGE {
            // The rest shares the frame's memory and would keep all of it as long as the process lives.
            self.buffer = BytesMut::from(self.buffer.as_ref());
        }
        Ok(Some(frame))
    }

    fn announced(&self) -> Option<usize> {
        let header = self.buffer.first_chunk::<HEADER>()?;
        usize::try_from(u32::from_be_bytes(*header)).ok()
    }

    fn wanted(&self) -> usize {
        self.announced()
            .map_or(0, |size| size.min(MAX_FRAME) + HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn decode(chunks: &[&[u8]]) -> Vec<Bytes> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            decoder.buffer().extend_from_slice(chunk);
            while let Some(frame) = decoder.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    #[test]
    fn the_memory_of_a_large_frame_is_not_kept() {
        let large = encode(&json!({"a": "x".repeat(8 << 20)})).unwrap();
        let small = encode(&json!({"b": 1})).unwrap();
        let mut decoder = Decoder::default();
        for piece in [large.as_ref(), small.as_ref()].concat().chunks(100_000) {
            decoder.buffer().extend_from_slice(piece);
            while let Some(frame) = decoder.next_frame().unwrap() {
                drop(frame);
            }
        }
        assert!(decoder.buffer().capacity() <= LARGE);
        decoder.buffer().extend_from_slice(&small);
        assert!(decoder.next_frame().unwrap().is_some());
    }

    #[test]
    fn frames_split_at_every_byte_are_the_same_frames() {
        let mut stream = Vec::new();
        for message in [
            json!({"a": "x"}),
            json!(null),
            json!({"b": [1, 2, "\u{1f600}"]}),
        ] {
            stream.extend_from_slice(&encode(&message).unwrap());
        }
        let whole = decode(&[&stream]);
        assert_eq!(whole.len(), 3);
        for cut in 0..=stream.len() {
            let (left, right) = stream.split_at(cut);
            assert_eq!(decode(&[left, right]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(decode(&bytes), whole);
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_it_is_read() {
        let mut decoder = Decoder::default();
        let size = u32::try_from(MAX_FRAME + 1).unwrap();
        decoder.buffer().extend_from_slice(&size.to_be_bytes());
        assert!(
            matches!(decoder.next_frame(), Err(JsError::FrameTooLarge { size, .. }) if size == MAX_FRAME + 1)
        );
        assert!(decoder.buffer().capacity() < 2 * MAX_FRAME);

        let large = "x".repeat(MAX_FRAME);
        assert!(matches!(encode(&large), Err(JsError::FrameTooLarge { .. })));
    }

    #[test]
    fn a_call_of_ready_parameters_is_the_same_frame() {
        let params = json!({"a": [1], "b": "x"});
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "m", "params": params});
        assert_eq!(
            encode_call(7, "m", &[br#"{"a":[1]"#, br#","b":"x"}"#]).unwrap(),
            encode(&message).unwrap()
        );
        let large = vec![b'1'; MAX_FRAME];
        assert!(matches!(
            encode_call(7, "m", &[&large]),
            Err(JsError::FrameTooLarge { .. })
        ));
    }

    #[test]
    fn an_empty_frame_is_a_frame() {
        assert_eq!(
            decode(&[&[0, 0, 0, 0, 0, 0, 0, 1, b'1']]),
            vec![Bytes::new(), Bytes::from_static(b"1")]
        );
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_frames(
            texts in prop::collection::vec(".{0,40}", 0..8),
            cuts in prop::collection::vec(0_usize..400, 0..12),
        ) {
            let mut stream = Vec::new();
            let mut expected = Vec::new();
            for text in &texts {
                let frame = encode(text).unwrap();
                expected.push(frame.slice(HEADER..));
                stream.extend_from_slice(&frame);
            }
            let mut points: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            points.extend([0, stream.len()]);
            points.sort_unstable();
            let chunks: Vec<&[u8]> = points.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks), expected);
        }
    }
}
