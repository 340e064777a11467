//! Raw streams and the resulting events, however the bytes are split.

use super::*;
use crate::testing::{compact, decode_all_cuts};

fn run(lines: &[&str]) -> String {
    decode_all_cuts(lines, || Box::<Decoder>::default())
}

const DONE: &str = r#"{"type":"response.completed","response":{"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3}}}}"#;

#[test]
fn reasoning_text_and_a_call() {
    insta::assert_snapshot!(run(&[
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_1","encrypted_content":"part"}}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","summary_index":0}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","delta":"think"}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","summary_index":1}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","delta":"more"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","encrypted_content":"enc"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"msg_1"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"Let me "}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"look"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","id":"msg_1"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{}"}}"#,
        DONE,
    ]), @r#"
    reasoning_start index=0
    reasoning_delta index=0 text="think"
    reasoning_end index=0 metadata={"openai":{"itemId":"rs_1"}}
    reasoning_start index=1
    reasoning_delta index=1 text="more"
    reasoning_end index=1 metadata={"openai":{"itemId":"rs_1","reasoningEncryptedContent":"enc"}}
    text_start index=2
    text_delta index=2 text="Let me "
    text_delta index=2 text="look"
    text_end index=2
    tool_start call_id="c1" tool="read"
    tool_end call_id="c1" tool="read" raw="{}" metadata={"openai":{"itemId":"fc_1"}}
    finished reason="tool-calls" usage={"input":10,"output":5,"reasoning":3,"cache_read":2,"cache_write":0}
    "#);
}

#[test]
fn ends_that_are_not_the_usual_one() {
    let cut = r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#;
    assert!(run(&[cut]).contains(r#"reason="length""#));
    // A server that announces nothing.
    let bare = run(&[
        r#"{"type":"response.output_text.delta","item_id":"m","delta":"Hi"}"#,
        DONE,
    ]);
    assert!(
        bare.contains("text_end index=0") && bare.contains(r#"reason="stop""#),
        "{bare}"
    );
}

#[test]
fn errors_are_errors() {
    for (line, status) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down"}"#,
            Some(429),
        ),
        (
            r#"{"type":"error","error":{"code":"server_error","message":"oops"}}"#,
            Some(500),
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"long"}}}"#,
            Some(400),
        ),
        (r#"{"type":"response.failed","response":{}}"#, None),
    ] {
        let mut decoder = Decoder::default();
        let event = SseEvent {
            name: String::new(),
            data: line.to_owned(),
        };
        match decoder.feed(&event, &mut Vec::new()) {
            Err(Failure::Provider { status: got, .. }) => assert_eq!(got, status, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    let mut decoder = Decoder::default();
    assert!(matches!(
        decoder.whole(json!({"x": 1}), &mut Vec::new()),
        Err(Failure::Malformed(_))
    ));
}

#[test]
fn an_answer_in_one_document() {
    let mut out = Vec::new();
    let body = json!({"output": [
        {"type": "reasoning", "id": "rs", "encrypted_content": "e", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "ls", "arguments": "{}"},
    ], "usage": {"input_tokens": 1, "output_tokens": 2}});
    Decoder::default().whole(body, &mut out).unwrap();
    insta::assert_snapshot!(compact(&out), @r#"
    reasoning_start index=0
    reasoning_delta index=0 text="hm"
    reasoning_end index=0 metadata={"openai":{"itemId":"rs","reasoningEncryptedContent":"e"}}
    text_start index=1
    text_delta index=1 text="Hi"
    text_end index=1
    tool_start call_id="c" tool="ls"
    tool_end call_id="c" tool="ls" raw="{}" metadata={"openai":{"itemId":"f"}}
    finished reason="tool-calls" usage={"input":1,"output":2,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
}
