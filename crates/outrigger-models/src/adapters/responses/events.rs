//! Decodes the response stream of the Responses API.
//!
//! Reasoning arrives as an item with numbered summary parts. As in the AI SDK, each part is a separate block, and only
//! the last block of an item has the encrypted content, which is known when the item ends.

use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::wire::{Decode, Failure, Progress, brief};
use outrigger_sse::Event as SseEvent;

/// A reasoning item in progress.
#[derive(Debug)]
struct Thought {
    item: String,
    block: u32,
    part: u64,
}

/// The state of one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: u32,
    text: Option<(String, u32)>,
    thought: Option<Thought>,
    called: bool,
    done: bool,
}

impl Decode for Decoder {
    fn feed(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(if self.done {
                Progress::Done
            } else {
                Progress::More
            });
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|e| Failure::Malformed(format!("not JSON ({e}): {}", brief(data))))?;
        self.event(&value, out)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        if let Some(failure) = failure(&body) {
            return Err(failure);
        }
        let items = body
            .get("output")
            .and_then(Value::as_array)
            .ok_or_else(|| {
                Failure::Malformed(format!("no output in {}", brief(&body.to_string())))
            })?;
        for item in items {
            self.begin(item, out);
            for part in item
                .get("content")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.text_delta(text(item, "id"), text(part, "text"), out);
            }
            for (at, part) in (0..).zip(
                item.get("summary")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten(),
            ) {
                self.part(text(item, "id"), at, out);
                self.think(text(part, "text"), out);
            }
            self.end_item(item, out);
        }
        self.finish(&body, out);
        Ok(())
    }

    fn end(&mut self, _out: &mut Vec<StreamEvent>) -> bool {
        self.done
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an error in an event or a response.
fn failure(value: &Value) -> Option<Failure> {
    let error = value.get("error").filter(|e| !e.is_null())?;
    let status = match text(error, "code") {
        "rate_limit_exceeded" | "insufficient_quota" => Some(429),
        "server_error" | "server_is_overloaded" => Some(500),
        "context_length_exceeded" | "invalid_prompt" => Some(400),
        _ => None,
    };
    Some(Failure::Provider {
        status,
        body: json!({ "error": error }),
    })
}

impl Decoder {
    fn event(&mut self, value: &Value, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let item = value.get("item").unwrap_or(&Value::Null);
        match text(value, "type") {
            "response.output_item.added" => self.begin(item, out),
            "response.output_item.done" => self.end_item(item, out),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.text_delta(text(value, "item_id"), text(value, "delta"), out);
            }
            "response.reasoning_summary_part.added" => {
                let at = value.get("summary_index").and_then(Value::as_u64);
                self.part(text(value, "item_id"), at.unwrap_or(0), out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(text(value, "delta"), out);
            }
            "response.completed" | "response.incomplete" => {
                self.finish(value.get("response").unwrap_or(&Value::Null), out);
                return Ok(Progress::Done);
            }
            "response.failed" => {
                let response = value.get("response").unwrap_or(&Value::Null);
                return Err(failure(response).unwrap_or(Failure::Provider {
                    status: None,
                    body: response.clone(),
                }));
            }
            "error" => {
                // Some servers wrap the error, some do not.
                let whole = json!({ "error": value });
                return Err(failure(value).or_else(|| failure(&whole)).unwrap_or(
                    Failure::Provider {
                        status: None,
                        body: value.clone(),
                    },
                ));
            }
            // Arguments arrive complete at the end of their item; other tools of the service are not offered.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn next_block(&mut self) -> u32 {
        let index = self.blocks;
        self.blocks += 1;
        index
    }

    fn begin(&mut self, item: &Value, out: &mut Vec<StreamEvent>) {
        match text(item, "type") {
            "message" => {
                let index = self.next_block();
                self.text = Some((text(item, "id").to_owned(), index));
                out.push(StreamEvent::TextStart { index });
            }
            "reasoning" => {
                let block = self.next_block();
                self.thought = Some(Thought {
                    item: text(item, "id").to_owned(),
                    block,
                    part: 0,
                });
                out.push(StreamEvent::ReasoningStart { index: block });
            }
            "function_call" => out.push(StreamEvent::ToolStart {
                call_id: text(item, "call_id").to_owned(),
                tool: text(item, "name").to_owned(),
            }),
            _ => {}
        }
    }

    fn text_delta(&mut self, item: &str, delta: &str, out: &mut Vec<StreamEvent>) {
        if delta.is_empty() {
            return;
        }
        let index = match &self.text {
            Some((_, index)) => *index,
            // A server that does not announce its items.
            None => {
                let index = self.next_block();
                self.text = Some((item.to_owned(), index));
                out.push(StreamEvent::TextStart { index });
                index
            }
        };
        out.push(StreamEvent::TextDelta {
            index,
            text: delta.to_owned(),
        });
    }

    /// Starts the next part of a summary, which ends the block of the previous one.
    fn part(&mut self, item: &str, at: u64, out: &mut Vec<StreamEvent>) {
        let Some((block, last)) = self.thought.as_ref().map(|t| (t.block, t.part)) else {
            return;
        };
        if at <= last {
            return;
        }
        out.push(StreamEvent::ReasoningEnd {
            index: block,
            metadata: Some(json!({"openai": {"itemId": item}})),
        });
        let index = self.next_block();
        out.push(StreamEvent::ReasoningStart { index });
        if let Some(thought) = &mut self.thought {
            thought.block = index;
            thought.part = at;
        }
    }

    fn think(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if let (Some(thought), false) = (&self.thought, delta.is_empty()) {
            out.push(StreamEvent::ReasoningDelta {
                index: thought.block,
                text: delta.to_owned(),
            });
        }
    }

    fn end_item(&mut self, item: &Value, out: &mut Vec<StreamEvent>) {
        match text(item, "type") {
            "message" => self.end_text(out),
            "reasoning" => self.end_thought(item.get("encrypted_content"), out),
            "function_call" => {
                self.called = true;
                out.push(StreamEvent::ToolEnd {
                    call_id: text(item, "call_id").to_owned(),
                    tool: text(item, "name").to_owned(),
                    raw: text(item, "arguments").to_owned(),
                    metadata: Some(json!({"openai": {"itemId": text(item, "id")}})),
                });
            }
            _ => {}
        }
    }

    fn end_text(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some((_, index)) = self.text.take() {
            out.push(StreamEvent::TextEnd { index });
        }
    }

    fn end_thought(&mut self, encrypted: Option<&Value>, out: &mut Vec<StreamEvent>) {
        if let Some(thought) = self.thought.take() {
            let encrypted = encrypted.cloned().unwrap_or(Value::Null);
            out.push(StreamEvent::ReasoningEnd {
                index: thought.block,
                metadata: Some(json!({"openai": {"itemId": thought.item, "reasoningEncryptedContent": encrypted}})),
            });
        }
    }

    fn finish(&mut self, response: &Value, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        self.end_thought(None, out);
        self.end_text(out);
        let why = response
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str);
        let reason = match why {
            None if self.called => "tool-calls",
            None => "stop",
            Some("max_output_tokens") => "length",
            Some("content_filter") => "content-filter",
            Some(_) if self.called => "tool-calls",
            Some(_) => "other",
        };
        let number = |pointer: &str| {
            response
                .pointer(pointer)
                .and_then(Value::as_u64)
                .unwrap_or(0)
        };
        out.push(StreamEvent::Finished {
            reason: reason.into(),
            usage: Usage {
                input: number("/usage/input_tokens"),
                output: number("/usage/output_tokens"),
                reasoning: number("/usage/output_tokens_details/reasoning_tokens"),
                cache_read: number("/usage/input_tokens_details/cached_tokens"),
                cache_write: 0,
            },
        });
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
