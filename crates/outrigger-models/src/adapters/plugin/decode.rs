//! Converts the pieces of a plugin's provider to stream events.

use outrigger_protocol::custom_points::{ProviderPiece, ProviderUsage};
use outrigger_protocol::model::{StreamEvent, Usage};
use serde_json::{Value, json};

use crate::adapters::wire::{Decode, Failure, Progress};
use outrigger_sse::Event as SseEvent;

/// Maximum bytes of one response's pieces.
const MAX_ANSWER_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Reasoning,
}

/// The state of one response.
#[derive(Default)]
pub(crate) struct Decoder {
    open: Option<Block>,
    index: u32,
    /// A call that was started and not completed: identifier and tool.
    begun: Option<(String, String)>,
    called: bool,
    bytes: usize,
}

impl Decoder {
    fn close(&mut self, out: &mut Vec<StreamEvent>) {
        let index = self.index;
        match self.open.take() {
            None => return,
            Some(Block::Text) => out.push(StreamEvent::TextEnd { index }),
            Some(Block::Reasoning) => out.push(StreamEvent::ReasoningEnd {
                index,
                metadata: None,
            }),
        }
        self.index += 1;
    }

    fn piece(&mut self, block: Block, text: String, out: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        if self.open != Some(block) {
            self.close(out);
            self.open = Some(block);
            let index = self.index;
            out.push(match block {
                Block::Text => StreamEvent::TextStart { index },
                Block::Reasoning => StreamEvent::ReasoningStart { index },
            });
        }
        let index = self.index;
        out.push(match block {
            Block::Text => StreamEvent::TextDelta { index, text },
            Block::Reasoning => StreamEvent::ReasoningDelta { index, text },
        });
    }

    fn call(&mut self, id: String, name: String, input: Value, out: &mut Vec<StreamEvent>) {
        self.close(out);
        let begun = self.begun.take();
        if begun.as_ref() != Some(&(id.clone(), name.clone())) {
            out.push(StreamEvent::ToolStart {
                call_id: id.clone(),
                tool: name.clone(),
            });
        }
        self.called = true;
        out.push(StreamEvent::ToolEnd {
            call_id: id,
            tool: name,
            raw: match input {
                Value::String(raw) => raw,
                Value::Null => "{}".to_owned(),
                input => input.to_string(),
            },
            metadata: None,
        });
    }
}

impl Decode for Decoder {
    fn feed(&mut self, event: &SseEvent, out: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        self.bytes = self.bytes.saturating_add(event.data.len());
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(Failure::Malformed(
                "the answer is longer than 64 MiB".into(),
            ));
        }
        let piece: ProviderPiece = serde_json::from_str(&event.data).map_err(|error| {
            Failure::Malformed(format!(
                "the plugin's `stream` yielded an invalid chunk: {error}"
            ))
        })?;
        match piece {
            ProviderPiece::Text { text } => self.piece(Block::Text, text, out),
            ProviderPiece::Reasoning { text } => self.piece(Block::Reasoning, text, out),
            ProviderPiece::ToolStart { id, name } => {
                self.close(out);
                self.begun = Some((id.clone(), name.clone()));
                out.push(StreamEvent::ToolStart {
                    call_id: id,
                    tool: name,
                });
            }
            ProviderPiece::ToolCall { id, name, input } => self.call(id, name, input, out),
            ProviderPiece::Finish { reason, usage } => {
                self.close(out);
                let default = if self.called { "tool-calls" } else { "stop" };
                out.push(StreamEvent::Finished {
                    reason: reason.unwrap_or_else(|| default.to_owned()),
                    usage: counted(usage),
                });
                return Ok(Progress::Done);
            }
            ProviderPiece::Error {
                message,
                status,
                code,
            } => {
                return Err(Failure::Provider {
                    status,
                    body: json!({ "error": { "message": message, "code": code } }),
                });
            }
        }
        Ok(Progress::More)
    }

    fn whole(&mut self, _: Value, _: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        Err(Failure::Malformed("the plugin streamed nothing".into()))
    }

    fn end(&mut self, _: &mut Vec<StreamEvent>) -> bool {
        false
    }
}

fn counted(usage: ProviderUsage) -> Usage {
    Usage {
        input: usage.input,
        output: usage.output,
        reasoning: usage.reasoning,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(pieces: &[Value]) -> Result<Vec<StreamEvent>, Failure> {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for piece in pieces {
            let event = SseEvent {
                name: String::new(),
                data: piece.to_string(),
            };
            if decoder.feed(&event, &mut out)? == Progress::Done {
                return Ok(out);
            }
        }
        assert!(!decoder.end(&mut out), "an answer ends with `finish`");
        Ok(out)
    }

    #[test]
    fn pieces_become_blocks_and_calls() {
        let out = decode_all(&[
            json!({"type": "reasoning", "text": "hm"}),
            json!({"type": "text", "text": "a"}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text", "text": "b"}),
            json!({"type": "tool-start", "id": "1", "name": "read"}),
            json!({"type": "tool-call", "id": "1", "name": "read", "input": {"p": 1}}),
            json!({"type": "tool-call", "id": "2", "name": "read", "input": "{bad"}),
            json!({"type": "finish", "usage": {"input": 3, "cacheRead": 1}}),
            json!({"type": "text", "text": "never"}),
        ]);
        let lines: Vec<String> = out
            .unwrap()
            .iter()
            .map(|event| json!(event).to_string())
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"type":"reasoning_start","index":0}
        {"type":"reasoning_delta","index":0,"text":"hm"}
        {"type":"reasoning_end","index":0}
        {"type":"text_start","index":1}
        {"type":"text_delta","index":1,"text":"a"}
        {"type":"text_delta","index":1,"text":"b"}
        {"type":"text_end","index":1}
        {"type":"tool_start","call_id":"1","tool":"read"}
        {"type":"tool_end","call_id":"1","tool":"read","raw":"{\"p\":1}"}
        {"type":"tool_start","call_id":"2","tool":"read"}
        {"type":"tool_end","call_id":"2","tool":"read","raw":"{bad"}
        {"type":"finished","reason":"tool-calls","usage":{"input":3,"output":0,"reasoning":0,"cache_read":1,"cache_write":0}}
        "#);
    }

    #[test]
    fn a_long_answer_is_refused() {
        for (rest, fits) in [(100, true), (10, false)] {
            let mut decoder = Decoder {
                bytes: 64 * 1024 * 1024 - rest,
                ..Decoder::default()
            };
            let event = SseEvent {
                name: String::new(),
                data: json!({"type": "text", "text": "a"}).to_string(),
            };
            assert_eq!(decoder.feed(&event, &mut Vec::new()).is_ok(), fits);
        }
    }

    #[test]
    fn what_is_no_piece_or_an_error_ends_it() {
        for piece in [
            json!(null),
            json!({"text": "a"}),
            json!({"type": "sound"}),
            json!({"type": "finish", "usage": {"input": -1}}),
        ] {
            assert!(
                matches!(
                    decode_all(std::slice::from_ref(&piece)),
                    Err(Failure::Malformed(_))
                ),
                "{piece}"
            );
        }
        let failed = decode_all(&[json!({"type": "error", "message": "no more", "status": 429})]);
        assert!(matches!(
            failed,
            Err(Failure::Provider {
                status: Some(429),
                ..
            })
        ));
    }
}
