//! Decodes the response stream of the Converse API. Each content block becomes one of our blocks and ends where
//! it ends.

use std::collections::BTreeMap;

use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::wire::{Decode, Failure, Progress, brief};
use outrigger_sse::Event;

#[derive(Debug)]
enum Block {
    Text {
        index: u32,
    },
    Thinking {
        index: u32,
        signature: Option<String>,
        redacted: Option<String>,
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
    done: bool,
}

impl Decode for Decoder {
    fn feed(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let data = event.data.trim();
        let value: Value = match data {
            "" => Value::Null,
            data => serde_json::from_str(data)
                .map_err(|e| Failure::Malformed(format!("not JSON ({e}): {}", brief(data))))?,
        };
        match event.name.as_str() {
            "contentBlockStart" => self.start(&value, out),
            "contentBlockDelta" => self.delta(&value, out),
            "contentBlockStop" => {
                if let Some(block) = self.open.remove(&slot(&value)) {
                    out.push(end_of(block));
                }
            }
            "messageStop" => {
                let reason = value.get("stopReason").and_then(Value::as_str);
                self.finish = Some(reason.unwrap_or("end_turn").to_owned());
            }
            // The last one.
            "metadata" => {
                self.read_usage(value.get("usage"));
                self.complete(out);
                return Ok(Progress::Done);
            }
            name => {
                if let Some(status) = status_of(name) {
                    return Err(Failure::Provider {
                        status: Some(status),
                        body: value,
                    });
                }
            }
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let content = body
            .pointer("/output/message/content")
            .and_then(Value::as_array);
        let Some(content) = content else {
            return Err(Failure::Provider { status: None, body });
        };
        for (at, block) in content.iter().enumerate() {
            let start = json!({"contentBlockIndex": at, "start": block});
            self.start(&start, out);
            let mut delta = block.clone();
            if let Some(input) = block.pointer("/toolUse/input") {
                delta = json!({"toolUse": {"input": input.to_string()}});
            } else if let Some(thought) = block.pointer("/reasoningContent/reasoningText") {
                delta = json!({"reasoningContent": thought});
            }
            self.delta(&json!({"contentBlockIndex": at, "delta": delta}), out);
            if let Some(block) = self.open.remove(&(at as u64)) {
                out.push(end_of(block));
            }
        }
        self.finish = body
            .get("stopReason")
            .and_then(Value::as_str)
            .map(str::to_owned);
        self.read_usage(body.get("usage"));
        self.complete(out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> bool {
        if self.finish.is_some() {
            self.complete(out);
        }
        self.done
    }
}

impl Decoder {
    /// Starts a block. Only tool calls have a start event; texts and thoughts start with their first piece.
    fn start(&mut self, value: &Value, out: &mut Vec<StreamEvent>) {
        let Some(call) = value.pointer("/start/toolUse") else {
            return;
        };
        let text = |key: &str| {
            call.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (id, tool) = (text("toolUseId"), text("name"));
        out.push(StreamEvent::ToolStart {
            call_id: id.clone(),
            tool: tool.clone(),
        });
        self.open.insert(
            slot(value),
            Block::Tool {
                id,
                tool,
                raw: String::new(),
            },
        );
    }

    fn delta(&mut self, value: &Value, out: &mut Vec<StreamEvent>) {
        let Some(delta) = value.get("delta") else {
            return;
        };
        let slot = slot(value);
        if let Some(text) = delta.get("text").and_then(Value::as_str) {
            let block = self.open.entry(slot).or_insert_with(|| {
                let index = next(&mut self.blocks);
                out.push(StreamEvent::TextStart { index });
                Block::Text { index }
            });
            if let (Block::Text { index }, false) = (block, text.is_empty()) {
                out.push(StreamEvent::TextDelta {
                    index: *index,
                    text: text.to_owned(),
                });
            }
        } else if let Some(piece) = delta.pointer("/toolUse/input").and_then(Value::as_str) {
            if let Some(Block::Tool { raw, .. }) = self.open.get_mut(&slot) {
                raw.push_str(piece);
            }
        } else if let Some(thought) = delta.get("reasoningContent") {
            self.think(slot, thought, out);
        }
    }

    fn think(&mut self, slot: u64, thought: &Value, out: &mut Vec<StreamEvent>) {
        let block = self.open.entry(slot).or_insert_with(|| {
            let index = next(&mut self.blocks);
            out.push(StreamEvent::ReasoningStart { index });
            Block::Thinking {
                index,
                signature: None,
                redacted: None,
            }
        });
        let Block::Thinking {
            index,
            signature,
            redacted,
        } = block
        else {
            return;
        };
        let text = |key: &str| thought.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(text) = text("text").filter(|it| !it.is_empty()) {
            out.push(StreamEvent::ReasoningDelta {
                index: *index,
                text,
            });
        }
        if let Some(piece) = text("signature") {
            signature.get_or_insert_default().push_str(&piece);
        }
        if let Some(data) = text("redactedContent").or_else(|| text("data")) {
            redacted.get_or_insert_default().push_str(&data);
        }
    }

    fn read_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else {
            return;
        };
        let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
        let (read, write) = (
            number("cacheReadInputTokens"),
            number("cacheWriteInputTokens"),
        );
        self.usage = Usage {
            // The service's count excludes the cache.
            input: number("inputTokens") + read + write,
            output: number("outputTokens"),
            cache_read: read,
            cache_write: write,
            ..Usage::default()
        };
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let open = std::mem::take(&mut self.open);
        out.extend(open.into_values().map(end_of));
        let reason = match self.finish.as_deref() {
            Some("tool_use") => "tool-calls",
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some("guardrail_intervened" | "content_filtered") => "content-filter",
            Some("end_turn" | "stop_sequence") => "stop",
            _ => "unknown",
        };
        out.push(StreamEvent::Finished {
            reason: reason.to_owned(),
            usage: self.usage,
        });
    }
}

fn next(blocks: &mut u32) -> u32 {
    let index = *blocks;
    *blocks += 1;
    index
}

fn slot(value: &Value) -> u64 {
    value
        .get("contentBlockIndex")
        .and_then(Value::as_u64)
        .unwrap_or(0)
}

fn end_of(block: Block) -> StreamEvent {
    match block {
        Block::Text { index } => StreamEvent::TextEnd { index },
        Block::Thinking {
            index,
            signature,
            redacted,
        } => {
            let metadata = match (redacted, signature) {
                (Some(data), _) => Some(json!({"bedrock": {"redactedData": data}})),
                (None, Some(signature)) => Some(json!({"bedrock": {"signature": signature}})),
                (None, None) => None,
            };
            StreamEvent::ReasoningEnd { index, metadata }
        }
        Block::Tool { id, tool, raw } => StreamEvent::ToolEnd {
            call_id: id,
            tool,
            // A call without arguments has no pieces.
            raw: if raw.is_empty() { "{}".to_owned() } else { raw },
            metadata: None,
        },
    }
}

/// Returns the HTTP status equivalent to an exception in the stream.
fn status_of(name: &str) -> Option<u16> {
    Some(match name {
        "validationException" => 400,
        "throttlingException" => 429,
        "internalServerException" | "modelStreamErrorException" => 500,
        "serviceUnavailableException" => 503,
        "modelTimeoutException" => 504,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::compact;

    fn run(events: &[(&str, &str)]) -> String {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        for (name, data) in events {
            let event = Event {
                name: (*name).into(),
                data: (*data).into(),
            };
            match decoder.feed(&event, &mut out) {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => return compact(&out),
                Err(failure) => return format!("{failure:?}"),
            }
        }
        if decoder.end(&mut out) {
            compact(&out)
        } else {
            "incomplete".into()
        }
    }

    #[test]
    fn thoughts_text_calls_and_usage() {
        insta::assert_snapshot!(run(&[
            ("messageStart", r#"{"role":"assistant"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"sig"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"Hi"}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
            ("contentBlockStart", r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t1","name":"read"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\":1}"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
            ("messageStop", r#"{"stopReason":"tool_use"}"#),
            ("metadata", r#"{"usage":{"inputTokens":5,"outputTokens":42,"totalTokens":47,"cacheReadInputTokens":90,"cacheWriteInputTokens":5}}"#),
        ]), @r#"
        reasoning_start index=0
        reasoning_delta index=0 text="hm"
        reasoning_end index=0 metadata={"bedrock":{"signature":"sig"}}
        text_start index=1
        text_delta index=1 text="Hi"
        text_end index=1
        tool_start call_id="t1" tool="read"
        tool_end call_id="t1" tool="read" raw="{\"a\":1}"
        finished reason="tool-calls" usage={"input":100,"output":42,"reasoning":0,"cache_read":90,"cache_write":5}
        "#);
    }

    #[test]
    fn errors_and_breaks() {
        insta::assert_snapshot!(run(&[("throttlingException", r#"{"message":"slow"}"#)]), @r#"Provider { status: Some(429), body: Object {"message": String("slow")} }"#);
        insta::assert_snapshot!(run(&[("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"so far"}}"#)]), @"incomplete");
    }

    #[test]
    fn an_answer_in_one_piece_is_read_too() {
        let mut out = Vec::new();
        let body = json!({"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}, {"toolUse": {"toolUseId": "t", "name": "ls", "input": {"a": 1}}}]}},
            "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 2}});
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
