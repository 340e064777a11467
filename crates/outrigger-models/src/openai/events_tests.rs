//! Raw streams and the events they become, however the bytes are cut.

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
    ]), @"");
}

#[test]
fn reasoning_ends_when_text_begins() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"reasoning_content":"think"}}]}"#,
        r#"{"choices":[{"delta":{"content":"Answer"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"again"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]), @"");
}

#[test]
fn reasoning_details_are_kept() {
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"s"}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]), @"");
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
    ]), @"");
}

#[test]
fn odd_calls_are_passed_on_as_they_came() {
    // Arguments that are no JSON; an identifier twice; none; every call numbered 0; no number at all.
    insta::assert_snapshot!(run(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":"{\"x\":"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"b","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":2,"function":{"name":"d","arguments":{"k":1}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":2,"id":"e","function":{"name":"e","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"f","function":{"name":"f","arguments":"not json"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]), @"");
}

#[test]
fn an_answer_without_done_is_complete_when_it_has_a_finish_reason() {
    insta::assert_snapshot!(run(&[r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}"#]), @"");
    insta::assert_snapshot!(run(&[r#"{"choices":[{"delta":{"content":"x"}}]}"#]), @"");
    insta::assert_snapshot!(run(&["[DONE]"]), @"");
}

#[test]
fn errors_inside_the_stream_are_failures() {
    insta::assert_snapshot!(run(&[r#"{"error":{"message":"overloaded","code":502}}"#]), @"");
    insta::assert_snapshot!(run(&["{broken"]), @"");
}

#[test]
fn an_answer_in_one_piece_is_read_too() {
    let mut out = Vec::new();
    let body = serde_json::json!({"choices":[{"message":{"role":"assistant","content":"Hi","tool_calls":[
        {"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":1,"completion_tokens":2}});
    Decoder::default().whole(body, &mut out).unwrap();
    insta::assert_snapshot!(compact(&out), @"");
    assert!(Decoder::default().whole(serde_json::json!({"ok": true}), &mut out).is_err());
}
