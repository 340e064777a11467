//! Helpers of this crate's unit tests.

use outrigger_protocol::model::{
    ChatMessage, Content, ModelParams, ModelRequest, StreamEvent, ToolOffer,
};
use serde_json::json;

use crate::adapters::wire::{Decode, Progress};
use outrigger_sse::Parser;

pub(crate) fn text(text: &str) -> Content {
    Content::Text { text: text.into() }
}

/// Returns a conversation of one step: this output of the model, a call of `read`, and its result.
pub(crate) fn one_step(said: Vec<Content>, params: ModelParams) -> ModelRequest {
    let call = Content::ToolCall {
        call_id: "c1".into(),
        tool: "read".into(),
        input: json!({"filePath": "/a"}),
        metadata: None,
    };
    ModelRequest {
        messages: [
            ChatMessage::System {
                content: "S".into(),
            },
            ChatMessage::User {
                content: vec![text("hi")],
            },
            ChatMessage::Assistant {
                content: said.into_iter().chain([call]).collect(),
            },
            ChatMessage::Tool {
                call_id: "c1".into(),
                tool: "read".into(),
                content: "A".into(),
                is_error: false,
            },
        ]
        .into(),
        tools: vec![ToolOffer {
            name: "read".into(),
            description: "d".into(),
            parameters: json!({"type": "object"}),
        }],
        params,
        headers: vec![],
        ..ModelRequest::default()
    }
}

/// Formats events one per line, without the quotes of JSON's keys.
pub(crate) fn compact(events: &[StreamEvent]) -> String {
    events
        .iter()
        .map(|e| {
            let value = serde_json::to_value(e).unwrap();
            let map = value.as_object().unwrap();
            let mut line = map["type"].as_str().unwrap().to_owned();
            for (key, value) in map.iter().filter(|(k, _)| *k != "type") {
                line.push_str(&format!(" {key}={value}"));
            }
            line
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn decode(chunks: &[&[u8]], mut decoder: Box<dyn Decode>) -> String {
    let (mut parser, mut out) = (Parser::new(1 << 20), Vec::new());
    let mut events = Vec::new();
    for chunk in chunks {
        parser.feed(chunk, &mut events).unwrap();
    }
    parser.finish(&mut events);
    for event in events {
        match decoder.feed(&event, &mut out) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => return compact(&out),
            Err(failure) => return format!("{}\n{failure:?}", compact(&out)),
        }
    }
    if !decoder.end(&mut out) {
        return format!("{}\nincomplete", compact(&out));
    }
    compact(&out)
}

/// Decodes `data:` lines (or raw `event:` blocks), cut at every byte; every cut must give the same.
pub(crate) fn decode_all_cuts(lines: &[&str], decoder: impl Fn() -> Box<dyn Decode>) -> String {
    let mut text = String::new();
    for line in lines {
        if !line.starts_with("event:") {
            text.push_str("data: ");
        }
        text.push_str(line);
        text.push_str("\n\n");
    }
    let bytes = text.as_bytes();
    let want = decode(&[bytes], decoder());
    for cut in 0..bytes.len() {
        let (a, b) = bytes.split_at(cut);
        assert_eq!(decode(&[a, b], decoder()), want, "cut at {cut}");
    }
    want
}
