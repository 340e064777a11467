//! The crate against a scripted server on the loopback interface.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic as tests do; clippy.toml exempts only the tests themselves"
)]

mod cassette;
mod catalog;
mod cloud;
mod logins;
mod providers;
mod server;
mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use outrigger_models::{
    ModelError, ModelStream, Models, ModelsOptions, Resolved, RetryPolicy, StreamItem,
    StreamOptions,
};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::{ChatMessage, Content, ModelRequest, StreamEvent, ToolOffer};
use serde_json::{Value, json};

pub(crate) const KEY: &str = "sk-secret-0123456789";

/// Returns models with the given `provider` entries and environment.
pub(crate) fn models(providers: Value, env: &[(&str, &str)]) -> Models {
    Models::new(ModelsOptions {
        providers: providers.as_object().cloned().unwrap(),
        env: env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..ModelsOptions::default()
    })
}

/// Returns the provider entry that the parity scenarios use.
pub(crate) fn mock(url: &str) -> Value {
    json!({"mock": {"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": {"baseURL": url, "apiKey": KEY},
        "models": {"m1": {"name": "M1", "tool_call": true, "limit": {"context": 100000, "output": 4000}}}}})
}

pub(crate) fn resolve(models: &Models, name: &str) -> Resolved {
    models.resolve(&ModelRef::parse(name).unwrap()).unwrap()
}

pub(crate) fn user(text: &str) -> ChatMessage {
    ChatMessage::User {
        content: vec![Content::Text { text: text.into() }],
    }
}

pub(crate) fn request(messages: Vec<ChatMessage>, tools: &[&str]) -> ModelRequest {
    ModelRequest {
        messages: messages.into(),
        tools: tools
            .iter()
            .map(|t| ToolOffer {
                name: (*t).into(),
                description: "d".into(),
                parameters: json!({"type": "object", "properties": {}}),
            })
            .collect(),
        ..ModelRequest::default()
    }
}

/// Returns options with quick retries, so that tests do not wait.
pub(crate) fn options(max_retries: u32) -> StreamOptions {
    StreamOptions {
        session_id: "ses_1".into(),
        retry: Some(RetryPolicy {
            max_retries,
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            max_asked: Duration::from_secs(5),
        }),
        ..StreamOptions::default()
    }
}

/// Returns everything that a stream yields, one item per line, up to its error.
pub(crate) async fn collect(mut stream: ModelStream) -> (Vec<String>, Option<ModelError>) {
    let mut lines = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamItem::Event(event)) => lines.push(line(&event)),
            Ok(StreamItem::Retry(notice)) => {
                lines.push(format!("retry {} {}", notice.attempt, notice.code))
            }
            Err(error) => return (lines, Some(error)),
        }
    }
    (lines, None)
}

fn line(event: &StreamEvent) -> String {
    match event {
        StreamEvent::Started => "started".into(),
        StreamEvent::TextStart { index } => format!("text {index} ["),
        StreamEvent::TextDelta { index, text } => format!("text {index} {text:?}"),
        StreamEvent::TextEnd { index } => format!("text {index} ]"),
        StreamEvent::ReasoningStart { index } => format!("reasoning {index} ["),
        StreamEvent::ReasoningDelta { index, text } => format!("reasoning {index} {text:?}"),
        StreamEvent::ReasoningEnd { index, metadata } => {
            format!(
                "reasoning {index} ] {}",
                metadata.clone().unwrap_or_default()
            )
        }
        StreamEvent::ToolStart { call_id, tool } => format!("tool {tool} {call_id} ["),
        StreamEvent::ToolEnd {
            call_id, tool, raw, ..
        } => format!("tool {tool} {call_id} ] {raw}"),
        StreamEvent::Finished { reason, usage } => {
            format!("finished {reason} {}/{}", usage.input, usage.output)
        }
    }
}
