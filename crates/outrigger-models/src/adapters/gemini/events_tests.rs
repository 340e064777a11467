//! Raw streams and the resulting events, however the bytes are split.

use super::*;
use crate::testing::{compact, decode_all_cuts};

fn run(lines: &[&str]) -> String {
    decode_all_cuts(lines, || Box::<Decoder>::default())
}

#[test]
fn thoughts_text_and_a_call() {
    insta::assert_snapshot!(run(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"think","thought":true}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thought":true,"thoughtSignature":"t1"},{"text":"Let me "}]}}]}"#,
        r#"{"response":{"candidates":[{"content":{"parts":[{"text":"look"}]}}]}}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"a":1}},"thoughtSignature":"f1"},{"functionCall":{"name":"ls"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":3,"cachedContentTokenCount":2}}"#,
    ]), @r#"
    reasoning_start index=0
    reasoning_delta index=0 text="think"
    reasoning_end index=0 metadata={"google":{"thoughtSignature":"t1"}}
    text_start index=1
    text_delta index=1 text="Let me "
    text_delta index=1 text="look"
    text_end index=1
    tool_start call_id="call_0" tool="read"
    tool_end call_id="call_0" tool="read" raw="{\"a\":1}" metadata={"google":{"thoughtSignature":"f1"}}
    tool_start call_id="call_1" tool="ls"
    tool_end call_id="call_1" tool="ls" raw="{}"
    finished reason="tool-calls" usage={"input":10,"output":8,"reasoning":3,"cache_read":2,"cache_write":0}
    "#);
}

#[test]
fn ends_and_errors() {
    for (reason, want) in [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("ODD", "other"),
    ] {
        let line = format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#);
        assert!(
            run(&[&line]).contains(&format!("reason=\"{want}\"")),
            "{reason}"
        );
    }
    for (line, status) in [
        (r#"{"error":{"code":503,"message":"busy"}}"#, Some(503)),
        (r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, Some(400)),
    ] {
        let event = SseEvent {
            name: String::new(),
            data: line.to_owned(),
        };
        match Decoder::default().feed(&event, &mut Vec::new()) {
            Err(Failure::Provider { status: got, .. }) => assert_eq!(got, status, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    // An answer that stops without a reason was interrupted.
    assert!(!Decoder::default().end(&mut Vec::new()));
    assert!(matches!(
        Decoder::default().whole(json!([]), &mut Vec::new()),
        Err(Failure::Malformed(_))
    ));
}

#[test]
fn a_list_of_chunks_in_one_document() {
    let mut out = Vec::new();
    let body = json!([
        {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ]);
    Decoder::default().whole(body, &mut out).unwrap();
    insta::assert_snapshot!(compact(&out), @r#"
    text_start index=0
    text_delta index=0 text="Hi"
    text_end index=0
    finished reason="stop" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
}
