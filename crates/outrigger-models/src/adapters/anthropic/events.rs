//! Decodes the response stream of the messages API. Each content block becomes one of our blocks and ends where
//! it ends.

use std::collections::BTreeMap;

use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::wire::{Decode, Failure, Progress, brief};
use outrigger_sse::Event as SseEvent;

#[derive(Debug)]
enum Block {
    Text {
        index: u32,
    },
    Thinking {
        index: u32,
        signature: String,
    },
    Redacted {
        index: u32,
        data: String,
    },
    Tool {
        id: String,
        tool: String,
        raw: String,
    },
}

/// The state of one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: u32,
    open: BTreeMap<u64, Block>,
    finish: Option<String>,
    usage: Usage,
    plain_input: u64,
    done: bool,
}

impl Decode for Decoder {
    fn feed(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let data = event.data.trim();
        // Proxies that also support the other format end with it.
        if data.is_empty() || data == "[DONE]" {
            return Ok(Progress::More);
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|e| Failure::Malformed(format!("not JSON ({e}): {}", brief(data))))?;
        match value
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "message_start" => self.read_usage(value.pointer("/message/usage")),
            "content_block_start" => self.start(&value, out),
            "content_block_delta" => self.delta(&value, out),
            "content_block_stop" => {
                if let Some(block) = self.open.remove(&slot(&value)) {
                    out.push(end_of(block));
                }
            }
            "message_delta" => {
                if let Some(reason) = value.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.finish = Some(reason.to_owned());
                }
                self.read_usage(value.get("usage"));
            }
            "message_stop" => {
                self.complete(out);
                return Ok(Progress::Done);
            }
            "error" => {
                return Err(Failure::Provider {
                    status: status_of(value.pointer("/error/type").and_then(Value::as_str)),
                    body: value,
                });
            }
            // `ping`, and future kinds.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        if body.get("type").and_then(Value::as_str) == Some("error") {
            return Err(Failure::Provider {
                status: status_of(body.pointer("/error/type").and_then(Value::as_str)),
                body,
            });
        }
        let Some(blocks) = body.get("content").and_then(Value::as_array) else {
            return Err(Failure::Malformed(format!(
                "no content in {}",
                brief(&body.to_string())
            )));
        };
        for block in blocks {
            self.start(&json!({"index": 0, "content_block": block}), out);
            if let Some(block) = self.open.remove(&0) {
                out.push(end_of(block));
            }
        }
        self.finish = body
            .get("stop_reason")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.read_usage(body.get("usage"));
        self.complete(out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> bool {
        if !self.done && self.finish.is_some() {
            self.complete(out);
        }
        self.done
    }
}

fn slot(value: &Value) -> u64 {
    value.get("index").and_then(Value::as_u64).unwrap_or(0)
}

// Returns the HTTP status that these kinds have before the stream.
fn status_of(kind: Option<&str>) -> Option<u16> {
    Some(match kind? {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "overloaded_error" => 529,
        _ => return None,
    })
}

fn end_of(block: Block) -> StreamEvent {
    match block {
        Block::Text { index } => StreamEvent::TextEnd { index },
        Block::Thinking { index, signature } => StreamEvent::ReasoningEnd {
            index,
            metadata: (!signature.is_empty())
                .then(|| json!({"anthropic": {"signature": signature}})),
        },
        Block::Redacted { index, data } => StreamEvent::ReasoningEnd {
            index,
            metadata: Some(json!({"anthropic": {"redactedData": data}})),
        },
        Block::Tool { id, tool, raw } => StreamEvent::ToolEnd {
            call_id: id,
            tool,
            // A call without arguments has no deltas.
            raw: if raw.is_empty() { "{}".into() } else { raw },
            metadata: None,
        },
    }
}

impl Decoder {
    fn start(&mut self, value: &Value, out: &mut Vec<StreamEvent>) {
        let block = value.get("content_block").unwrap_or(&Value::Null);
        let text = |key: &str| {
            block
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let kind = text("type");
        let opened = match kind.as_str() {
            "text" => {
                let index = self.next_block();
                out.push(StreamEvent::TextStart { index });
                push_text(index, &text("text"), out);
                Block::Text { index }
            }
            "thinking" => {
                let index = self.next_block();
                out.push(StreamEvent::ReasoningStart { index });
                push_reasoning(index, &text("thinking"), out);
                Block::Thinking {
                    index,
                    signature: text("signature"),
                }
            }
            "redacted_thinking" => {
                let index = self.next_block();
                out.push(StreamEvent::ReasoningStart { index });
                Block::Redacted {
                    index,
                    data: text("data"),
                }
            }
            "tool_use" => {
                let (id, tool) = (text("id"), text("name"));
                out.push(StreamEvent::ToolStart {
                    call_id: id.clone(),
                    tool: tool.clone(),
                });
                let raw = match block.get("input") {
                    Some(Value::Object(input)) if !input.is_empty() => {
                        Value::Object(input.clone()).to_string()
                    }
                    _ => String::new(),
                };
                Block::Tool { id, tool, raw }
            }
            // Tools that the provider runs itself are not offered, so their blocks do not occur.
            _ => return,
        };
        self.open.insert(slot(value), opened);
    }

    fn next_block(&mut self) -> u32 {
        let index = self.blocks;
        self.blocks += 1;
        index
    }

    fn delta(&mut self, value: &Value, out: &mut Vec<StreamEvent>) {
        let delta = value.get("delta").unwrap_or(&Value::Null);
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match self.open.get_mut(&slot(value)) {
            Some(Block::Text { index }) => push_text(*index, text("text"), out),
            Some(Block::Thinking { index, signature }) => {
                push_reasoning(*index, text("thinking"), out);
                signature.push_str(text("signature"));
            }
            Some(Block::Tool { raw, .. }) => raw.push_str(text("partial_json")),
            Some(Block::Redacted { .. }) | None => {}
        }
    }

    fn read_usage(&mut self, usage: Option<&Value>) {
        let number = |key: &str| usage.and_then(|u| u.get(key)).and_then(Value::as_u64);
        if let Some(n) = number("input_tokens") {
            self.plain_input = n;
        }
        if let Some(n) = number("output_tokens") {
            self.usage.output = n;
        }
        if let Some(n) = number("cache_read_input_tokens") {
            self.usage.cache_read = n;
        }
        if let Some(n) = number("cache_creation_input_tokens") {
            self.usage.cache_write = n;
        }
        // This provider counts the cache separately from the input; our `input` includes it.
        self.usage.input = self.plain_input + self.usage.cache_read + self.usage.cache_write;
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        if self.done {
            return;
        }
        self.done = true;
        out.extend(std::mem::take(&mut self.open).into_values().map(end_of));
        let reason = match self.finish.as_deref() {
            Some("end_turn" | "stop_sequence" | "pause_turn") => "stop",
            Some("tool_use") => "tool-calls",
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some("refusal") => "content-filter",
            _ => "other",
        };
        out.push(StreamEvent::Finished {
            reason: reason.into(),
            usage: self.usage,
        });
    }
}

fn push_text(index: u32, text: &str, out: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        let text = text.to_owned();
        out.push(StreamEvent::TextDelta { index, text });
    }
}

fn push_reasoning(index: u32, text: &str, out: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        let text = text.to_owned();
        out.push(StreamEvent::ReasoningDelta { index, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compact, decode_all_cuts};

    fn run(events: &[&str]) -> String {
        decode_all_cuts(events, || Box::<Decoder>::default())
    }

    const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":90,\"cache_creation_input_tokens\":5,\"output_tokens\":1}}}";

    #[test]
    fn thinking_text_and_parallel_tools() {
        insta::assert_snapshot!(run(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"enc"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"ls","input":{}}}"#,
            r#"{"type":"content_block_stop","index":4}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":42}}"#,
            r#"{"type":"message_stop"}"#,
        ]), @r#"
        reasoning_start index=0
        reasoning_delta index=0 text="hm"
        reasoning_end index=0 metadata={"anthropic":{"signature":"sig"}}
        reasoning_start index=1
        reasoning_end index=1 metadata={"anthropic":{"redactedData":"enc"}}
        text_start index=2
        text_delta index=2 text="Hi"
        text_end index=2
        tool_start call_id="toolu_1" tool="read"
        tool_end call_id="toolu_1" tool="read" raw="{\"a\":1}"
        tool_start call_id="toolu_2" tool="ls"
        tool_end call_id="toolu_2" tool="ls" raw="{}"
        finished reason="tool-calls" usage={"input":100,"output":42,"reasoning":0,"cache_read":90,"cache_write":5}
        "#);
    }

    #[test]
    fn errors_and_breaks() {
        insta::assert_snapshot!(run(&[START, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]), @r#"Provider { status: Some(529), body: Object {"type": String("error"), "error": Object {"type": String("overloaded_error"), "message": String("Overloaded")}} }"#);
        insta::assert_snapshot!(run(&[START]), @"incomplete");
    }

    #[test]
    fn an_answer_in_one_piece_is_read_too() {
        let mut out = Vec::new();
        let body = json!({"type": "message", "content": [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}});
        Decoder::default().whole(body, &mut out).unwrap();
        insta::assert_snapshot!(compact(&out), @r#"
        text_start index=0
        text_delta index=0 text="Hi"
        text_end index=0
        tool_start call_id="t" tool="ls"
        tool_end call_id="t" tool="ls" raw="{\"a\":1}"
        finished reason="tool-calls" usage={"input":1,"output":2,"reasoning":0,"cache_read":0,"cache_write":0}
        "#);
    }
}
