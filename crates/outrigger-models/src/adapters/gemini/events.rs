//! Decodes Gemini's response stream.

use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::wire::{Decode, Failure, Progress, brief};
use outrigger_sse::Event as SseEvent;

/// An open block.
#[derive(Debug)]
struct OpenBlock {
    index: u32,
    is_thought: bool,
    signature: Option<Value>,
}

/// The state of one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: u32,
    open: Option<OpenBlock>,
    calls: u32,
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
        let chunk: Value = serde_json::from_str(data)
            .map_err(|e| Failure::Malformed(format!("not JSON ({e}): {}", brief(data))))?;
        self.chunk(&chunk, out)?;
        Ok(Progress::More)
    }

    fn whole(&mut self, body: Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        // Without `alt=sse` the service responds with a list of chunks.
        let chunks = match body {
            Value::Array(chunks) => chunks,
            one => vec![one],
        };
        for chunk in &chunks {
            self.chunk(chunk, out)?;
        }
        if self.finish.is_none() {
            return Err(Failure::Malformed("no candidates in the answer".to_owned()));
        }
        self.complete(out);
        Ok(())
    }

    // Nothing but the end of the stream marks the end.
    fn end(&mut self, out: &mut Vec<StreamEvent>) -> bool {
        if self.finish.is_some() {
            self.complete(out);
        }
        self.done
    }
}

impl Decoder {
    fn chunk(&mut self, chunk: &Value, out: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        // The Code Assist endpoint, which plugins use, wraps each chunk once more.
        let chunk = chunk
            .get("response")
            .filter(|r| r.is_object())
            .unwrap_or(chunk);
        if let Some(error) = chunk.get("error").filter(|e| !e.is_null()) {
            let status = error.get("code").and_then(Value::as_u64);
            return Err(Failure::Provider {
                status: status.and_then(|s| u16::try_from(s).ok()),
                body: chunk.clone(),
            });
        }
        if let Some(usage) = chunk.get("usageMetadata") {
            self.usage = read_usage(usage);
        }
        if let Some(reason) = chunk
            .pointer("/promptFeedback/blockReason")
            .and_then(Value::as_str)
        {
            return Err(Failure::Provider {
                status: Some(400),
                body: json!({"error": {"message": format!("the prompt was blocked by the service's safety rules: {reason}")}}),
            });
        }
        let Some(candidate) = chunk.pointer("/candidates/0") else {
            return Ok(());
        };
        let parts = candidate
            .pointer("/content/parts")
            .and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, out);
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<StreamEvent>) {
        let signature = part.get("thoughtSignature").cloned();
        if let Some(call) = part.get("functionCall") {
            self.close(out);
            let tool = call.get("name").and_then(Value::as_str).unwrap_or_default();
            let given = call.get("id").and_then(Value::as_str).unwrap_or_default();
            // The service rarely names its calls.
            let call_id = if given.is_empty() {
                format!("call_{}", self.calls)
            } else {
                given.to_owned()
            };
            self.calls += 1;
            out.push(StreamEvent::ToolStart {
                call_id: call_id.clone(),
                tool: tool.to_owned(),
            });
            let args = call.get("args").filter(|a| !a.is_null());
            out.push(StreamEvent::ToolEnd {
                call_id,
                tool: tool.to_owned(),
                raw: args.map_or_else(|| "{}".to_owned(), Value::to_string),
                metadata: signature.map(|s| json!({"google": {"thoughtSignature": s}})),
            });
            return;
        }
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            return;
        };
        // An empty text may carry the signature of what came before.
        if text.is_empty() {
            if let (Some(open), Some(signature)) = (&mut self.open, signature) {
                open.signature = Some(signature);
            }
            return;
        }
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        let index = self.block(is_thought, out);
        if let (Some(open), Some(signature)) = (&mut self.open, signature) {
            open.signature = Some(signature);
        }
        let text = text.to_owned();
        out.push(if is_thought {
            StreamEvent::ReasoningDelta { index, text }
        } else {
            StreamEvent::TextDelta { index, text }
        });
    }

    /// Returns the open block of this kind; one of the other kind ends.
    fn block(&mut self, is_thought: bool, out: &mut Vec<StreamEvent>) -> u32 {
        if let Some(open) = &self.open
            && open.is_thought == is_thought
        {
            return open.index;
        }
        self.close(out);
        let index = self.blocks;
        self.blocks += 1;
        self.open = Some(OpenBlock {
            index,
            is_thought,
            signature: None,
        });
        out.push(if is_thought {
            StreamEvent::ReasoningStart { index }
        } else {
            StreamEvent::TextStart { index }
        });
        index
    }

    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        let Some(open) = self.open.take() else { return };
        out.push(if open.is_thought {
            StreamEvent::ReasoningEnd {
                index: open.index,
                metadata: open
                    .signature
                    .map(|s| json!({"google": {"thoughtSignature": s}})),
            }
        } else {
            StreamEvent::TextEnd { index: open.index }
        });
    }

    fn complete(&mut self, out: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        self.close(out);
        let reason = match self.finish.as_deref() {
            Some("STOP") if self.calls > 0 => "tool-calls",
            Some("STOP") => "stop",
            Some("MAX_TOKENS") => "length",
            Some(
                "IMAGE_SAFETY" | "RECITATION" | "SAFETY" | "BLOCKLIST" | "PROHIBITED_CONTENT"
                | "SPII",
            ) => "content-filter",
            Some("MALFORMED_FUNCTION_CALL") => "error",
            _ => "other",
        };
        out.push(StreamEvent::Finished {
            reason: reason.into(),
            usage: self.usage,
        });
    }
}

fn read_usage(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    let thoughts = number("thoughtsTokenCount");
    Usage {
        input: number("promptTokenCount"),
        // The service counts thoughts separately.
        output: number("candidatesTokenCount") + thoughts,
        reasoning: thoughts,
        cache_read: number("cachedContentTokenCount"),
        cache_write: 0,
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
