//! The request body. Keys and their order are those of OpenCode (parity recordings, A3).

use outrigger_protocol::Object;
use outrigger_protocol::model::{ChatMessage, Content, ModelInfo, ModelRequest, ToolChoice};
use serde_json::{Value, json};

use super::Dialect;
use crate::adapters::body::{Body, Form};
use crate::adapters::wire::js_number;
use crate::content::{FilePlan, plan_file};

/// Builds the body of a streaming request.
pub(crate) fn body(dialect: Dialect, model: &ModelInfo, request: &ModelRequest) -> Body {
    let mut out = Object::new();
    out.insert("model".into(), model.api.id.clone().into());
    params(dialect, model, request, &mut out);
    let form = Form::of(("openai", dialect), model);
    let messages = form.list(&request.messages, |it| vec![message(dialect, model, it)]);
    // Placeholder for the list.
    out.insert("messages".into(), Value::Null);
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|t| {
                json!({"type": "function", "function": {
                    "name": t.name, "description": t.description, "parameters": t.parameters}})
            })
            .collect();
        out.insert("tools".into(), tools.into());
        out.insert("tool_choice".into(), choice(request.tool_choice).into());
    }
    out.insert("stream".into(), true.into());
    if dialect != Dialect::Strict {
        out.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Body::with_list(out, "messages", messages)
}

/// Returns the word in both APIs of OpenAI and in compatible ones.
pub(crate) fn choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "required",
    }
}

fn params(dialect: Dialect, model: &ModelInfo, request: &ModelRequest, out: &mut Object) {
    let params = &request.params;
    let own_reasoning = dialect == Dialect::OpenAi && model.capabilities.reasoning;
    // As OpenCode's built-in plugin for Cerebras does: where the options have that limit, the general one is left out.
    let has_limit =
        model.api.npm == "@ai-sdk/cerebras" && params.options.contains_key("max_completion_tokens");
    if let Some(max) = params.max_output_tokens.filter(|_| !has_limit) {
        let key = if own_reasoning {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        out.insert(key.into(), max.into());
    }
    let sampling = [
        ("temperature", params.temperature),
        ("top_p", params.top_p),
        ("top_k", params.top_k),
    ];
    for (key, value) in sampling {
        // `top_k` is not a parameter of chat completions; OpenRouter and local servers accept it, OpenAI
        // refuses it.
        let takes = !own_reasoning
            && (key != "top_k" || matches!(dialect, Dialect::OpenRouter | Dialect::Compatible));
        if let (Some(value), true) = (value, takes) {
            out.insert(key.into(), js_number(value));
        }
    }
    for (key, value) in &params.options {
        // For the Responses API; services that know neither refuse them.
        if dialect != Dialect::Compatible && matches!(key.as_str(), "store" | "promptCacheKey") {
            continue;
        }
        // Options have the AI SDK's names; these two differ on the wire.
        let key = match key.as_str() {
            "reasoningEffort" => "reasoning_effort",
            "textVerbosity" => "verbosity",
            other => other,
        };
        out.insert(key.into(), value.clone());
    }
}

fn message(dialect: Dialect, model: &ModelInfo, message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System { content } => json!({"role": "system", "content": content}),
        ChatMessage::User { content } => match content.as_slice() {
            [Content::Text { text }] => json!({"role": "user", "content": text}),
            parts => {
                let parts: Vec<Value> = parts.iter().filter_map(|c| user_part(model, c)).collect();
                json!({"role": "user", "content": parts})
            }
        },
        ChatMessage::Assistant { content } => assistant(dialect, model, content),
        ChatMessage::Tool {
            call_id, content, ..
        } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": content})
        }
    }
}

fn user_part(model: &ModelInfo, content: &Content) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    Some(match content {
        Content::Text { text: t } => text(t),
        Content::File {
            mime,
            url,
            filename,
        } => match plan_file(model, mime, url, filename.as_deref()) {
            FilePlan::Image => json!({"type": "image_url", "image_url": {"url": url}}),
            FilePlan::Pdf => json!({"type": "file", "file": {
                "filename": filename.as_deref().unwrap_or("file.pdf"), "file_data": url}}),
            FilePlan::Audio { data, format } => {
                json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
            }
            FilePlan::Say(words) => text(&words),
        },
        Content::Reasoning { .. } | Content::ToolCall { .. } => return None,
    })
}

fn assistant(dialect: Dialect, model: &ModelInfo, content: &[Content]) -> Value {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut calls: Vec<Value> = Vec::new();
    let mut details: Vec<Value> = Vec::new();
    for part in content {
        match part {
            Content::Text { text: t } => text.push_str(t),
            Content::Reasoning { text: t, metadata } => {
                reasoning.push_str(t);
                let found = metadata
                    .as_ref()
                    .and_then(|m| m.pointer("/openrouter/reasoning_details"));
                details.extend(
                    found
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
            }
            Content::ToolCall {
                call_id,
                tool,
                input,
                ..
            } => calls.push(json!({"id": call_id, "type": "function",
                "function": {"name": tool, "arguments": input.to_string()}})),
            Content::File { .. } => {}
        }
    }
    let mut out = Object::new();
    out.insert("role".into(), "assistant".into());
    // With tool calls and no text, OpenCode sends an empty string, not null.
    out.insert("content".into(), text.into());
    if let (Some(field), false) = (reasoning_field(dialect, model), reasoning.is_empty()) {
        out.insert(field, reasoning.into());
    }
    if dialect == Dialect::OpenRouter && !details.is_empty() {
        out.insert("reasoning_details".into(), details.into());
    }
    if !calls.is_empty() {
        out.insert("tool_calls".into(), calls.into());
    }
    out.into()
}

// Returns the field in which reasoning is sent back, if it is.
fn reasoning_field(dialect: Dialect, model: &ModelInfo) -> Option<String> {
    match dialect {
        Dialect::Compatible => Some(
            model
                .capabilities
                .interleaved
                .get("field")
                .and_then(Value::as_str)
                .unwrap_or("reasoning_content")
                .to_owned(),
        ),
        Dialect::OpenRouter => Some("reasoning".into()),
        Dialect::OpenAi | Dialect::Strict | Dialect::NoReasoningBack => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{one_step, text};
    use outrigger_protocol::model::ModelParams;

    fn body(dialect: Dialect, model: &ModelInfo, request: &ModelRequest) -> Object {
        super::body(dialect, model, request).into_object()
    }

    fn model() -> ModelInfo {
        let mut model = ModelInfo::default();
        model.api.id = "m1".into();
        model.capabilities.input.text = true;
        model
    }

    fn request() -> ModelRequest {
        let said = vec![Content::Reasoning {
            text: "hm".into(),
            metadata: None,
        }];
        let params = ModelParams {
            temperature: Some(0.25),
            top_p: Some(1.0),
            max_output_tokens: Some(4000),
            options: json!({"extra_thing": "yes", "reasoningEffort": "low"})
                .as_object()
                .cloned()
                .unwrap(),
            ..ModelParams::default()
        };
        let mut request = one_step(said, params);
        request.messages.push(
            ChatMessage::User {
                content: vec![text("one"), text("two")],
            }
            .into(),
        );
        request
    }

    #[test]
    fn the_body_is_that_of_opencode() {
        let got = Value::Object(body(Dialect::Compatible, &model(), &request()));
        insta::assert_snapshot!(serde_json::to_string_pretty(&got).unwrap(), @r#"
        {
          "model": "m1",
          "max_tokens": 4000,
          "temperature": 0.25,
          "top_p": 1,
          "extra_thing": "yes",
          "reasoning_effort": "low",
          "messages": [
            {
              "role": "system",
              "content": "S"
            },
            {
              "role": "user",
              "content": "hi"
            },
            {
              "role": "assistant",
              "content": "",
              "reasoning_content": "hm",
              "tool_calls": [
                {
                  "id": "c1",
                  "type": "function",
                  "function": {
                    "name": "read",
                    "arguments": "{\"filePath\":\"/a\"}"
                  }
                }
              ]
            },
            {
              "role": "tool",
              "tool_call_id": "c1",
              "content": "A"
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "text",
                  "text": "one"
                },
                {
                  "type": "text",
                  "text": "two"
                }
              ]
            }
          ],
          "tools": [
            {
              "type": "function",
              "function": {
                "name": "read",
                "description": "d",
                "parameters": {
                  "type": "object"
                }
              }
            }
          ],
          "tool_choice": "auto",
          "stream": true,
          "stream_options": {
            "include_usage": true
          }
        }
        "#);
    }

    #[test]
    fn a_call_may_be_required() {
        let mut request = request();
        request.tool_choice = ToolChoice::Required;
        for dialect in [Dialect::Compatible, Dialect::OpenAi, Dialect::Strict] {
            assert_eq!(body(dialect, &model(), &request)["tool_choice"], "required");
        }
        request.tools.clear();
        let none = body(Dialect::Compatible, &model(), &request);
        assert!(none.get("tool_choice").is_none());
    }

    #[test]
    fn cerebras_has_one_limit_of_output_tokens() {
        let mut model = model();
        let mut request = request();
        let limits = |model: &ModelInfo, request: &ModelRequest| {
            let body = body(Dialect::NoReasoningBack, model, request);
            ["max_tokens", "max_completion_tokens"].map(|key| body.get(key).cloned())
        };
        model.api.npm = "@ai-sdk/cerebras".into();
        assert_eq!(limits(&model, &request), [Some(json!(4000)), None]);
        let options = &mut request.params.options;
        options.insert("max_completion_tokens".into(), json!(900));
        assert_eq!(limits(&model, &request), [None, Some(json!(900))]);
        model.api.npm = "@ai-sdk/groq".into();
        let both = [Some(json!(4000)), Some(json!(900))];
        assert_eq!(limits(&model, &request), both);
    }

    #[test]
    fn dialects_differ_where_services_do() {
        let mut model = model();
        model.capabilities.reasoning = true;
        let keys = |d| {
            body(d, &model, &request())
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        insta::assert_snapshot!(keys(Dialect::OpenAi), @"model max_completion_tokens extra_thing reasoning_effort messages tools tool_choice stream stream_options");
        insta::assert_snapshot!(keys(Dialect::Strict), @"model max_tokens temperature top_p extra_thing reasoning_effort messages tools tool_choice stream");
        let assistant = |d| {
            body(d, &model, &request())
                .get("messages")
                .and_then(|m| m.get(2))
                .cloned()
                .unwrap()
        };
        assert!(
            assistant(Dialect::Compatible)
                .get("reasoning_content")
                .is_some()
        );
        assert!(assistant(Dialect::OpenRouter).get("reasoning").is_some());
        assert!(
            assistant(Dialect::Strict)
                .get("reasoning_content")
                .is_none()
        );
    }
}
