//! Raw streams and the resulting events, however the bytes are split.

use super::*;
use crate::testing::{compact, decode_all_cuts};

fn run(lines: &[&str]) -> String {
    decode_all_cuts(lines, || Box::<Decoder>::default())
}

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":3}}}"#;

#[test]
fn text_ends_with_the_stream() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":{"content":"Hi "}}]}"#,
        r#"{"choices":[{"delta":{"content":"there"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        USAGE,
        "[DONE]",
    ]), @r#"
    text_start index=0
    text_delta index=0 text="Hi "
    text_delta index=0 text="there"
    text_end index=0
    finished reason="stop" usage={"input":100,"output":10,"reasoning":3,"cache_read":40,"cache_write":0}
    "#);
}

#[test]
fn reasoning_ends_when_text_begins() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"reasoning_content":"think"}}]}"#,
        r#"{"choices":[{"delta":{"content":"Answer"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"again"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]), @r#"
    reasoning_start index=0
    reasoning_delta index=0 text="think"
    reasoning_end index=0
    text_start index=1
    text_delta index=1 text="Answer"
    reasoning_start index=2
    reasoning_delta index=2 text="again"
    reasoning_end index=2
    tool_start call_id="c" tool="ls"
    tool_end call_id="c" tool="ls" raw="{}"
    text_end index=1
    finished reason="tool-calls" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
}

#[test]
fn reasoning_details_are_kept() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"s"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]), @r#"
    reasoning_start index=0
    reasoning_delta index=0 text="a"
    reasoning_end index=0 metadata={"openrouter":{"reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","signature":"s"}]}}
    text_start index=1
    text_delta index=1 text="b"
    text_end index=1
    finished reason="stop" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
}

#[test]
fn parallel_calls_end_when_their_arguments_are_complete() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"content":"Both."}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c0","type":"function","function":{"name":"read","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c1","type":"function","function":{"name":"glob","arguments":"{\"pattern\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"filePath\":\"}\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\"*\"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        USAGE,
        "[DONE]",
    ]), @r#"
    text_start index=0
    text_delta index=0 text="Both."
    tool_start call_id="c0" tool="read"
    tool_start call_id="c1" tool="glob"
    tool_end call_id="c0" tool="read" raw="{\"filePath\":\"}\"}"
    tool_end call_id="c1" tool="glob" raw="{\"pattern\":\"*\"}"
    text_end index=0
    finished reason="tool-calls" usage={"input":100,"output":10,"reasoning":3,"cache_read":40,"cache_write":0}
    "#);
}

#[test]
fn odd_calls_are_passed_on_as_they_came() {
    // Arguments that are not JSON; a duplicate identifier; none; every call numbered 0; no number
    // at all.
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"b","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":2,"function":{"name":"d","arguments":{"k":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":2,"id":"e","function":{"name":"e","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"f","function":{"name":"f","arguments":"not json"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]), @r#"
    tool_start call_id="c" tool="a"
    tool_start call_id="c" tool="b"
    tool_end call_id="c" tool="b" raw="{}"
    tool_start call_id="" tool="d"
    tool_end call_id="" tool="d" raw="{\"k\":1}"
    tool_start call_id="e" tool="e"
    tool_end call_id="e" tool="e" raw="{}"
    tool_start call_id="f" tool="f"
    tool_end call_id="c" tool="a" raw="{\"x\":"
    tool_end call_id="f" tool="f" raw="not json"
    finished reason="tool-calls" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
}

#[test]
fn an_answer_without_done_is_complete_when_it_has_a_finish_reason() {
    insta::assert_snapshot!(run(&[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}"#]), @r#"
    text_start index=0
    text_delta index=0 text="x"
    text_end index=0
    finished reason="length" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
    insta::assert_snapshot!(run(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#]), @r#"
    text_start index=0
    text_delta index=0 text="x"
    incomplete
    "#);
    insta::assert_snapshot!(run(&["[DONE]"]), @r#"finished reason="other" usage={"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write":0}"#);
}

#[test]
fn errors_inside_the_stream_are_failures() {
    insta::assert_snapshot!(run(&[r#"{"error":{"message":"overloaded","code":502}}"#]), @r#"Provider { status: Some(502), body: Object {"error": Object {"message": String("overloaded"), "code": Number(502)}} }"#);
    insta::assert_snapshot!(run(&["{broken"]), @r#"Malformed("not JSON (key must be a string at line 1 column 2): {broken")"#);
}

#[test]
fn an_answer_in_one_piece_is_read_too() {
    let mut out = Vec::new();
    let body = serde_json::json!({"choices":[{"message":{"role":"assistant","content":"Hi","tool_calls":[
        {"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":1,"completion_tokens":2}});
    Decoder::default().whole(body, &mut out).unwrap();
    insta::assert_snapshot!(compact(&out), @r#"
    text_start index=0
    text_delta index=0 text="Hi"
    tool_start call_id="c" tool="ls"
    tool_end call_id="c" tool="ls" raw="{}"
    text_end index=0
    finished reason="tool-calls" usage={"input":1,"output":2,"reasoning":0,"cache_read":0,"cache_write":0}
    "#);
    assert!(
        Decoder::default()
            .whole(serde_json::json!({"ok": true}), &mut out)
            .is_err()
    );
}
