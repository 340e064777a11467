//! The request body of the Converse API.

use outrigger_protocol::Object;
use outrigger_protocol::model::{
    ChatMessage, Content, Messages, ModelInfo, ModelRequest, ToolChoice,
};
use serde_json::{Value, json};

use crate::adapters::wire::js_number;
use crate::content::{FilePlan, data_of, plan_file};

/// Builds the body of a streaming request. The model is part of the URL.
pub(crate) fn body(model: &ModelInfo, request: &ModelRequest) -> Object {
    let mut out = Object::new();
    let caches = caches(&model.api.id);
    let (mut system, mut messages) = conversation(model, &request.messages);
    if caches {
        mark(&mut system);
        // The last two messages, as for Anthropic's own API.
        for message in messages.iter_mut().rev().take(2) {
            if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut) {
                mark(content);
            }
        }
    }
    if !system.is_empty() {
        out.insert("system".into(), system.into());
    }
    out.insert("messages".into(), messages.into());
    let (config, more) = settings(model, request);
    if !config.is_empty() {
        out.insert("inferenceConfig".into(), config.into());
    }
    if !more.is_empty() {
        out.insert("additionalModelRequestFields".into(), more.into());
    }
    if let Some(tools) = tools(request) {
        out.insert("toolConfig".into(), tools);
    }
    out
}

/// Returns whether the service caches marked prompts of a model.
fn caches(id: &str) -> bool {
    ["claude", "nova"].iter().any(|part| id.contains(part))
}

fn mark(blocks: &mut Vec<Value>) {
    if !blocks.is_empty() {
        blocks.push(json!({"cachePoint": {"type": "default"}}));
    }
}

/// Returns the settings with names of the service, and those passed to the model unchanged.
fn settings(model: &ModelInfo, request: &ModelRequest) -> (Object, Object) {
    let params = &request.params;
    let (mut config, mut more) = (Object::new(), Object::new());
    let mut thinks = None;
    for (key, value) in &params.options {
        match key.as_str() {
            "reasoningConfig" | "thinking" => thinks = Some(value),
            "effort" => {
                more.insert("output_config".into(), json!({"effort": value}));
            }
            "additionalModelRequestFields" => {
                more.extend(value.as_object().cloned().unwrap_or_default())
            }
            "guardrailConfig" | "anthropicBeta" | "serviceTier" => {}
            other => {
                more.insert(other.to_owned(), value.clone());
            }
        }
    }
    let field = |snake: &str, camel: &str| {
        let value = thinks?;
        value.get(snake).or_else(|| value.get(camel)).cloned()
    };
    let budget = field("budget_tokens", "budgetTokens").and_then(|it| it.as_u64());
    let mut max = params.max_output_tokens;
    match budget {
        Some(budget) => {
            more.insert(
                "thinking".into(),
                json!({"type": "enabled", "budget_tokens": budget}),
            );
            // The budget counts towards the limit.
            max = max.map(|max| match model.limit.output {
                0 => max + budget,
                limit => (max + budget).min(limit).max(budget + 1),
            });
        }
        None if field("type", "type") == Some(json!("adaptive")) => {
            more.insert("thinking".into(), json!({"type": "adaptive"}));
        }
        None => {}
    }
    if let Some(max) = max {
        config.insert("maxTokens".into(), max.into());
    }
    // The models refuse sampling parameters while they think.
    if budget.is_none() {
        for (key, value) in [("temperature", params.temperature), ("topP", params.top_p)] {
            if let Some(value) = value {
                config.insert(key.into(), js_number(value));
            }
        }
        if let Some(top_k) = params.top_k {
            more.insert("top_k".into(), js_number(top_k));
        }
    }
    (config, more)
}

fn tools(request: &ModelRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let spec = |tool: &outrigger_protocol::model::ToolOffer| {
        // An empty description is refused.
        let description = match tool.description.trim() {
            "" => tool.name.as_str(),
            text => text,
        };
        json!({"toolSpec": {"name": tool.name, "description": description, "inputSchema": {"json": tool.parameters}}})
    };
    let tools: Vec<Value> = request.tools.iter().map(spec).collect();
    let choice = match request.tool_choice {
        ToolChoice::Auto => json!({"auto": {}}),
        ToolChoice::Required => json!({"any": {}}),
    };
    Some(json!({"tools": tools, "toolChoice": choice}))
}

/// Returns system blocks and messages. Adjacent messages of one role are merged, since the API requires
/// alternating roles.
fn conversation(model: &ModelInfo, messages: &Messages) -> (Vec<Value>, Vec<Value>) {
    let mut system = Vec::new();
    let mut out: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in messages.iter() {
        let (role, blocks): (_, Vec<Value>) = match &**message {
            ChatMessage::System { content } => {
                if !content.trim().is_empty() {
                    system.push(json!({"text": content}));
                }
                continue;
            }
            ChatMessage::User { content } => (
                "user",
                content
                    .iter()
                    .filter_map(|c| user_block(model, c))
                    .collect(),
            ),
            ChatMessage::Assistant { content } => (
                "assistant",
                content.iter().filter_map(assistant_block).collect(),
            ),
            ChatMessage::Tool {
                call_id,
                content,
                is_error,
                ..
            } => {
                let status = if *is_error { "error" } else { "success" };
                let text = if content.is_empty() { " " } else { content };
                let result =
                    json!({"toolUseId": call_id, "content": [{"text": text}], "status": status});
                ("user", vec![json!({"toolResult": result})])
            }
        };
        match out.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, into)) if *last == role => into.extend(blocks),
            _ => out.push((role, blocks)),
        }
    }
    let messages = out
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}));
    (system, messages.collect())
}

fn text(text: &str) -> Option<Value> {
    // The service refuses blank texts.
    (!text.trim().is_empty()).then(|| json!({"text": text}))
}

fn user_block(model: &ModelInfo, content: &Content) -> Option<Value> {
    match content {
        Content::Text { text: words } => text(words),
        Content::File {
            mime,
            url,
            filename,
        } => match plan_file(model, mime, url, filename.as_deref()) {
            FilePlan::Say(words) => text(&words),
            _ => file(mime, url)
                .or_else(|| text(&format!("[a file of type {mime} cannot be sent here]"))),
        },
        Content::Reasoning { .. } | Content::ToolCall { .. } => None,
    }
}

/// Converts an image or a document to its bytes.
fn file(mime: &str, url: &str) -> Option<Value> {
    let source = json!({"bytes": data_of(url)?});
    let (kind, format) = mime.split_once('/')?;
    match (kind, format) {
        ("image", "jpeg" | "jpg" | "png" | "gif" | "webp") => {
            let format = if format == "jpg" { "jpeg" } else { format };
            Some(json!({"image": {"format": format, "source": source}}))
        }
        ("application", "pdf") => {
            Some(json!({"document": {"format": "pdf", "name": "document", "source": source}}))
        }
        _ => None,
    }
}

/// Converts a content block. Thoughts are returned with their signature; without it the service refuses them.
fn assistant_block(content: &Content) -> Option<Value> {
    match content {
        Content::Text { text: words } => text(words),
        Content::Reasoning { text, metadata } => {
            let of = |key: &str| metadata.as_ref()?.pointer(key).cloned();
            if let Some(data) = of("/bedrock/redactedData") {
                return Some(json!({"reasoningContent": {"redactedContent": data}}));
            }
            let signature = of("/bedrock/signature")?;
            Some(
                json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}),
            )
        }
        Content::ToolCall {
            call_id,
            tool,
            input,
            ..
        } => Some(json!({"toolUse": {"toolUseId": call_id, "name": tool, "input": input}})),
        Content::File { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::model::{ModelParams, ToolOffer};

    #[test]
    fn a_conversation_in_the_services_form() {
        let say = |text: &str| Content::Text { text: text.into() };
        let mut model = ModelInfo::default();
        model.api.id = "anthropic.claude-x".into();
        model.capabilities.input.image = true;
        model.limit.output = 20_000;
        let request = ModelRequest {
            messages: [
                ChatMessage::System {
                    content: "S".into(),
                },
                ChatMessage::User {
                    content: vec![
                        say("hi"),
                        Content::File {
                            mime: "image/png".into(),
                            url: "data:image/png;base64,AAAA".into(),
                            filename: None,
                        },
                    ],
                },
                ChatMessage::Assistant {
                    content: vec![
                        Content::Reasoning {
                            text: "hm".into(),
                            metadata: Some(json!({"bedrock": {"signature": "sig"}})),
                        },
                        Content::Reasoning {
                            text: "lost".into(),
                            metadata: None,
                        },
                        say(" "),
                        Content::ToolCall {
                            call_id: "t1".into(),
                            tool: "read".into(),
                            input: json!({"a": 1}),
                            metadata: None,
                        },
                    ],
                },
                ChatMessage::Tool {
                    call_id: "t1".into(),
                    tool: "read".into(),
                    content: String::new(),
                    is_error: true,
                },
                ChatMessage::User {
                    content: vec![say("go on")],
                },
            ]
            .into(),
            tools: vec![ToolOffer {
                name: "read".into(),
                description: " ".into(),
                parameters: json!({"type": "object"}),
            }],
            params: ModelParams {
                temperature: Some(1.0),
                max_output_tokens: Some(8000),
                options: json!({"thinking": {"type": "enabled", "budgetTokens": 16000}})
                    .as_object()
                    .cloned()
                    .unwrap(),
                ..ModelParams::default()
            },
            ..ModelRequest::default()
        };
        let got = body(&model, &request);
        let lines: Vec<String> = got
            .iter()
            .map(|(key, value)| match value {
                Value::Array(items) => items
                    .iter()
                    .fold(key.clone(), |out, i| format!("{out}\n  {i}")),
                other => format!("{key} {other}"),
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        system
          {"text":"S"}
          {"cachePoint":{"type":"default"}}
        messages
          {"role":"user","content":[{"text":"hi"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}
          {"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"sig"}}},{"toolUse":{"toolUseId":"t1","name":"read","input":{"a":1}}},{"cachePoint":{"type":"default"}}]}
          {"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":" "}],"status":"error"}},{"text":"go on"},{"cachePoint":{"type":"default"}}]}
        inferenceConfig {"maxTokens":20000}
        additionalModelRequestFields {"thinking":{"type":"enabled","budget_tokens":16000}}
        toolConfig {"tools":[{"toolSpec":{"name":"read","description":"read","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"auto":{}}}
        "#);
    }
}
