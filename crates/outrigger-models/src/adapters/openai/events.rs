//! Decodes the response stream of chat completions.
//!
//! The order of events is that of the AI SDK's adapter, because it determines the order of stored parts: reasoning
//! ends when text or a tool call starts, text ends when the stream does, a tool call ends as soon as its arguments
//! are complete JSON.

use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::json_scan::{JsonScan, is_json};
use crate::adapters::wire::{Decode, Failure, Progress, brief};
use outrigger_sse::Event as SseEvent;

#[derive(Debug)]
struct Call {
    /// The provider's number for it.
    slot: Option<u64>,
    id: String,
    tool: String,
    raw: String,
    scan: JsonScan,
    started: bool,
    ended: bool,
}

#[derive(Debug)]
struct OpenBlock {
    index: u32,
    details: Vec<Value>,
}

/// The state of one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: u32,
    text: Option<u32>,
    reasoning: Option<OpenBlock>,
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Usage,
    done: bool,
}

impl Decode for Decoder {
    fn feed(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if data == "[DONE]" {
            self.complete(out);
            return Ok(Progress::Done);
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|e| Failure::Malformed(format!("not JSON ({e}): {}", brief(data))))?;
        self.chunk(&chunk, "delta", out)?;
        Ok(Progress::More)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        self.chunk(&body, "message", out)?;
        if body.pointer("/choices/0/message").is_none() {
            return Err(Failure::Malformed(format!(
                "no choices in {}",
                brief(&body.to_string())
            )));
        }
        self.complete(out);
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<StreamEvent>) -> bool {
        // Some servers omit [DONE]; the finish reason is sufficient.
        if !self.done && self.finish.is_some() {
            self.complete(out);
        }
        self.done
    }
}

impl Decoder {
    fn chunk(
        &mut self,
        chunk: &Value,
        key: &str,
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), Failure> {
        if let Some(error) = chunk.get("error").filter(|e| !e.is_null()) {
            let status = ["code", "status"]
                .iter()
                .find_map(|k| error.get(*k).and_then(Value::as_u64))
                .and_then(|s| u16::try_from(s).ok())
                .filter(|s| (400..600).contains(s));
            return Err(Failure::Provider {
                status,
                body: chunk.clone(),
            });
        }
        let usage = chunk
            .get("usage")
            .filter(|u| u.is_object())
            .or_else(|| chunk.pointer("/x_groq/usage"));
        if let Some(usage) = usage {
            self.usage = read_usage(usage);
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(());
        };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
        }
        if let Some(delta) = choice.get(key) {
            self.delta(delta, out);
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) {
        let text_of = |key: &str| {
            delta
                .get(key)
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
        };
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        let reasoning = text_of("reasoning_content").or_else(|| text_of("reasoning"));
        if reasoning.is_some() || details.is_some_and(|d| !d.is_empty()) {
            self.reason(reasoning, details.map_or(&[], Vec::as_slice), out);
        }
        if let Some(text) = text_of("content") {
            self.end_reasoning(out);
            let index = match self.text {
                Some(index) => index,
                None => {
                    let index = self.next_block();
                    self.text = Some(index);
                    out.push(StreamEvent::TextStart { index });
                    index
                }
            };
            out.push(StreamEvent::TextDelta {
                index,
                text: text.to_owned(),
            });
        }
        for call in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.end_reasoning(out);
            self.call(call, out);
        }
    }

    fn next_block(&mut self) -> u32 {
        let index = self.blocks;
        self.blocks += 1;
        index
    }

    fn reason(&mut self, text: Option<&str>, details: &[Value], out: &mut Vec<StreamEvent>) {
        if self.reasoning.is_none() {
            // Details after the text (OpenRouter sends signatures late) no longer belong to a block.
            if text.is_none() && self.text.is_some() {
                return;
            }
            let index = self.next_block();
            self.reasoning = Some(OpenBlock {
                index,
                details: Vec::new(),
            });
            out.push(StreamEvent::ReasoningStart { index });
        }
        if let Some(open) = &mut self.reasoning {
            open.details.extend(details.iter().cloned());
            if let Some(text) = text {
                out.push(StreamEvent::ReasoningDelta {
                    index: open.index,
                    text: text.to_owned(),
                });
            }
        }
    }

    fn end_reasoning(&mut self, out: &mut Vec<StreamEvent>) {
        if let Some(open) = self.reasoning.take() {
            let metadata = (!open.details.is_empty())
                .then(|| json!({"openrouter": {"reasoning_details": open.details}}));
            out.push(StreamEvent::ReasoningEnd {
                index: open.index,
                metadata,
            });
        }
    }

    fn call(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) {
        let slot = delta.get("index").and_then(Value::as_u64);
        let text = |pointer: &str| {
            delta
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (id, name) = (text("/id"), text("/function/name"));
        let at = self.find_call(slot, id, name);
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        if call.ended {
            return;
        }
        if call.id.is_empty() && !id.is_empty() && !call.started {
            id.clone_into(&mut call.id);
        }
        // The name is complete in the first piece; servers that repeat it must not double it.
        if call.tool.is_empty() {
            name.clone_into(&mut call.tool);
        }
        if !call.started && !call.tool.is_empty() {
            call.started = true;
            out.push(StreamEvent::ToolStart {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
            });
        }
        let arguments = match delta.pointer("/function/arguments") {
            Some(Value::String(piece)) => piece.clone(),
            // Some local servers send the arguments as an object.
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        call.raw.push_str(&arguments);
        if call.scan.feed(&arguments) && call.started && is_json(&call.raw) {
            call.ended = true;
            out.push(end_of(call));
        }
    }

    /// Finds the call of a piece: the one with its number, unless a new identifier arrives for a call that is already
    /// complete (servers that number every call 0). Without a number, a name starts a call and everything else
    /// continues the last one.
    fn find_call(&mut self, slot: Option<u64>, id: &str, name: &str) -> usize {
        let found = match slot {
            Some(_) => self.calls.iter().rposition(|c| c.slot == slot),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        if let Some((at, call)) = found.and_then(|at| Some((at, self.calls.get(at)?))) {
            let another = !name.is_empty()
                && !id.is_empty()
                && id != call.id
                && (call.ended || !call.id.is_empty());
            if !another {
                return at;
            }
        }
        self.calls.push(Call {
            slot,
            id: id.to_owned(),
            tool: String::new(),
            raw: String::new(),
            scan: JsonScan::default(),
            started: false,
            ended: false,
        });
        self.calls.len() - 1
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        if self.done {
            return;
        }
        self.done = true;
        self.end_reasoning(out);
        if let Some(index) = self.text.take() {
            out.push(StreamEvent::TextEnd { index });
        }
        for call in self.calls.iter_mut().filter(|c| !c.ended) {
            call.ended = true;
            if !call.started {
                out.push(StreamEvent::ToolStart {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                });
            }
            out.push(end_of(call));
        }
        let reason = match self.finish.as_deref() {
            Some("stop") => "stop",
            Some("length") => "length",
            Some("content_filter") => "content-filter",
            Some("tool_calls" | "function_call") => "tool-calls",
            Some("error") => "error",
            _ => "other",
        };
        out.push(StreamEvent::Finished {
            reason: reason.into(),
            usage: self.usage,
        });
    }
}

fn end_of(call: &Call) -> StreamEvent {
    StreamEvent::ToolEnd {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        raw: call.raw.clone(),
        metadata: None,
    }
}

fn read_usage(usage: &Value) -> Usage {
    let number = |pointers: &[&str]| {
        pointers
            .iter()
            .find_map(|p| usage.pointer(p).and_then(Value::as_u64))
            .unwrap_or(0)
    };
    Usage {
        input: number(&["/prompt_tokens"]),
        output: number(&["/completion_tokens"]),
        reasoning: number(&["/completion_tokens_details/reasoning_tokens"]),
        // The second name is DeepSeek's.
        cache_read: number(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
        ]),
        cache_write: number(&["/prompt_tokens_details/cache_write_tokens"]),
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
