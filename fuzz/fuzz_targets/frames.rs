//! Bytes of a plugin's channel, cut anywhere: the decoder answers the same frames however they come, and what is in one
//! is either understood or refused.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use outrigger_js::{Decoder, encode};
use outrigger_protocol::login::AuthChunk;
use outrigger_protocol::rpc::{
    Enter, Hello, HookResult, Initialized, Log, MAX_FRAME, Message, SdkRequest, Stage, ToolAsk,
    ToolMetadata,
};

/// The frames of a stream that comes in pieces of these sizes, and whether it broke.
fn decode(stream: &[u8], mut cuts: impl Iterator<Item = usize>) -> (Vec<Bytes>, bool) {
    let mut decoder = Decoder::default();
    let (mut frames, mut rest) = (Vec::new(), stream);
    while !rest.is_empty() {
        let size = cuts.next().unwrap_or(rest.len()).clamp(1, rest.len());
        let (piece, behind) = rest.split_at(size);
        rest = behind;
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

fuzz_target!(|data: &[u8]| {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let whole = decode(stream, std::iter::empty());
    let parts = decode(stream, std::iter::repeat(usize::from(cut) + 1));
    assert_eq!(whole, parts);
    for frame in &whole.0 {
        assert!(frame.len() <= MAX_FRAME);
        let Ok(message) = serde_json::from_slice::<Message>(frame) else {
            continue;
        };
        // What was understood is written and read as the same.
        let (again, broken) = decode(&encode(&message).unwrap(), std::iter::empty());
        assert!(!broken && again.len() == 1);
        assert_eq!(serde_json::from_slice::<Message>(&again[0]).unwrap(), message);
        for body in [message.params, message.result].into_iter().flatten() {
            let _ = serde_json::from_value::<Hello>(body.clone());
            let _ = serde_json::from_value::<Initialized>(body.clone());
            let _ = serde_json::from_value::<HookResult>(body.clone());
            let _ = serde_json::from_value::<SdkRequest>(body.clone());
            let _ = serde_json::from_value::<ToolAsk>(body.clone());
            let _ = serde_json::from_value::<ToolMetadata>(body.clone());
            let _ = serde_json::from_value::<AuthChunk>(body.clone());
            let _ = serde_json::from_value::<Enter>(body.clone());
            let _ = serde_json::from_value::<Stage>(body.clone());
            let _ = serde_json::from_value::<Log>(body);
        }
    }
});
