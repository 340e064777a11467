//! The request body of the messages API.

use outrigger_protocol::Object;
use outrigger_protocol::model::{
    ChatMessage, Content, Messages, ModelInfo, ModelRequest, Role, SharedMessage, ToolChoice,
};
use serde_json::{Value, json};

use crate::adapters::body::{Body, Form, Items};
use crate::adapters::wire::js_number;
use crate::content::{FilePlan, data_of, plan_file};

/// Default of the required `max_tokens` if neither the request nor the catalog has one.
const DEFAULT_MAX_TOKENS: u64 = 8192;

/// Builds the body of a streaming request.
pub(crate) fn body(model: &ModelInfo, request: &ModelRequest) -> Body {
    let params = &request.params;
    let thinking = params.options.get("thinking").map(thinking_option);
    let budget = thinking
        .as_ref()
        .and_then(|t| t.get("budget_tokens")?.as_u64());
    let mut max = params
        .max_output_tokens
        .unwrap_or(match model.limit.output {
            0 => DEFAULT_MAX_TOKENS,
            known => known,
        });
    if let Some(budget) = budget {
        // The budget counts towards the limit; as in the AI SDK it is added, up to the model's maximum.
        max = max.saturating_add(budget);
        if model.limit.output > 0 {
            max = max.min(model.limit.output).max(budget + 1);
        }
    }
    let mut out = Object::new();
    out.insert("model".into(), model.api.id.clone().into());
    out.insert("max_tokens".into(), max.into());
    let sampling = [
        ("temperature", params.temperature),
        ("top_p", params.top_p),
        ("top_k", params.top_k),
    ];
    for (key, value) in sampling {
        // The API refuses sampling parameters while the model thinks.
        if let (Some(value), None) = (value, budget) {
            out.insert(key.into(), js_number(value));
        }
    }
    for (key, value) in &params.options {
        match key.as_str() {
            "thinking" => {}
            "effort" => {
                out.insert("output_config".into(), json!({"effort": value}));
            }
            other => {
                out.insert(other.into(), value.clone());
            }
        }
    }
    if let Some(thinking) = thinking {
        out.insert("thinking".into(), thinking);
    }
    let (system, messages) = conversation(model, &request.messages);
    if !system.is_empty() {
        out.insert("system".into(), system.into());
    }
    // Placeholder for the list.
    out.insert("messages".into(), Value::Null);
    tools(request, &mut out);
    out.insert("stream".into(), true.into());
    Body::with_list(out, "messages", messages)
}

fn tools(request: &ModelRequest, out: &mut Object) {
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|t| json!({"name": t.name, "description": t.description, "input_schema": t.parameters}))
            .collect();
        out.insert("tools".into(), tools.into());
        let choice = match request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::Required => "any",
        };
        out.insert("tool_choice".into(), json!({"type": choice}));
    }
}

// Reads the budget, which has the AI SDK's name in the option.
fn thinking_option(option: &Value) -> Value {
    let Some(map) = option.as_object() else {
        return option.clone();
    };
    map.iter()
        .map(|(key, value)| {
            let key = if key == "budgetTokens" {
                "budget_tokens"
            } else {
                key
            };
            (key.to_owned(), value.clone())
        })
        .collect::<Object>()
        .into()
}

/// Consecutive messages of one role: the API requires alternating roles, so they are merged.
struct RoleMessages<'a> {
    role: Role,
    messages: Vec<&'a SharedMessage>,
}

/// Returns system blocks, and the items of `messages`. The first two system blocks and the last two messages are marked for
/// the prompt cache, as in OpenCode.
fn conversation(model: &ModelInfo, messages: &Messages) -> (Vec<Value>, Items) {
    let form = Form::of("anthropic", model);
    let system = messages.system().filter(|text| !text.trim().is_empty());
    let block = |text| json!({"type": "text", "text": text});
    let mut system: Vec<Value> = system.map(block).collect();
    for block in system.iter_mut().take(2) {
        mark_for_cache(block);
    }
    let (marked, rest) = last_two(form, model, messages);
    let mut items = Items::default();
    let open = form.write(
        messages.stretches(rest),
        &mut items,
        |message, open, list| {
            let Some(role) = role(message) else {
                return open;
            };
            form.read(
                message,
                |it| blocks(model, it),
                |blocks| {
                    if blocks.is_empty() {
                        return open;
                    }
                    if open == Some(role) {
                        list.push(',');
                    } else {
                        if open.is_some() {
                            list.push_str("]}");
                        }
                        begin_message(role, list);
                    }
                    list.push_str(blocks);
                    Some(role)
                },
            )
        },
    );
    if open.is_some() {
        items.end().push_str("]}");
    }
    append_marked(model, &marked, items.end());
    (system, items)
}

/// Returns the role of a message in the API.
fn role(message: &ChatMessage) -> Option<Role> {
    match message {
        ChatMessage::System { .. } => None,
        ChatMessage::User { .. } | ChatMessage::Tool { .. } => Some(Role::User),
        ChatMessage::Assistant { .. } => Some(Role::Assistant),
    }
}

/// Returns the last two messages, and the number of messages before.
fn last_two<'a>(
    form: Form,
    model: &ModelInfo,
    messages: &'a Messages,
) -> (Vec<RoleMessages<'a>>, usize) {
    let mut last: Vec<RoleMessages<'_>> = Vec::new();
    let mut rest = messages.len();
    for message in messages.iter().rev() {
        let is_empty = || form.read(message, |it| blocks(model, it), str::is_empty);
        if let Some(role) = role(message).filter(|_| !is_empty()) {
            let count = last.len();
            match last.last_mut() {
                Some(said) if said.role == role => said.messages.push(message),
                _ if count == 2 => break,
                _ => last.push(RoleMessages {
                    role,
                    messages: vec![message],
                }),
            }
        }
        rest -= 1;
    }
    for said in &mut last {
        said.messages.reverse();
    }
    last.reverse();
    (last, rest)
}

fn begin_message(role: Role, list: &mut String) {
    let role = match role {
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    list.push_str(&format!(r#",{{"role":"{role}","content":["#));
}

/// Appends the last messages, which are marked and trimmed, so that their cached text cannot be used.
fn append_marked(model: &ModelInfo, last: &[RoleMessages<'_>], list: &mut String) {
    let mut end = last.len();
    for said in last {
        let messages = said.messages.iter();
        let mut content: Vec<Value> = messages.flat_map(|it| blocks(model, it)).collect();
        end -= 1;
        if end == 0 && said.role == Role::Assistant {
            trim_last_text(&mut content);
        }
        if let Some(block) = content.iter_mut().rev().find(|it| is_markable(it)) {
            mark_for_cache(block);
        }
        begin_message(said.role, list);
        let content: Vec<String> = content.iter().map(Value::to_string).collect();
        list.push_str(&content.join(","));
        list.push_str("]}");
    }
}

// The API refuses a conversation that ends with trailing white space in an assistant's text.
fn trim_last_text(blocks: &mut [Value]) {
    if let Some(Value::String(text)) = blocks.last_mut().and_then(|b| b.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}

/// Returns the blocks of a message.
fn blocks(model: &ModelInfo, message: &ChatMessage) -> Vec<Value> {
    match message {
        ChatMessage::System { .. } => Vec::new(),
        ChatMessage::User { content } => content
            .iter()
            .filter_map(|c| user_block(model, c))
            .collect(),
        ChatMessage::Assistant { content } => content.iter().filter_map(assistant_block).collect(),
        ChatMessage::Tool {
            call_id,
            content,
            is_error,
            ..
        } => vec![tool_result(call_id, content, *is_error)],
    }
}

/// Returns whether a block can be marked; thinking blocks cannot.
fn is_markable(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    !matches!(kind, Some("thinking" | "redacted_thinking"))
}

fn mark_for_cache(block: &mut Value) {
    if let Some(map) = block.as_object_mut() {
        map.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}

fn tool_result(call_id: &str, content: &str, is_error: bool) -> Value {
    let mut block =
        json!({"type": "tool_result", "tool_use_id": clean_id(call_id), "content": content});
    if let (true, Some(map)) = (is_error, block.as_object_mut()) {
        map.insert("is_error".into(), true.into());
    }
    block
}

fn text_block(text: &str) -> Option<Value> {
    // The API refuses empty text.
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn user_block(model: &ModelInfo, content: &Content) -> Option<Value> {
    match content {
        Content::Text { text } => text_block(text),
        Content::File {
            mime,
            url,
            filename,
        } => {
            let source = || match data_of(url) {
                Some(data) => json!({"type": "base64", "media_type": mime, "data": data}),
                None => json!({"type": "url", "url": url}),
            };
            match plan_file(model, mime, url, filename.as_deref()) {
                FilePlan::Image => Some(json!({"type": "image", "source": source()})),
                FilePlan::Pdf => Some(json!({"type": "document", "source": source()})),
                FilePlan::Say(words) => text_block(&words),
                FilePlan::Audio { .. } => {
                    text_block("ERROR: an audio file was attached, and this model cannot take it.")
                }
            }
        }
        Content::Reasoning { .. } | Content::ToolCall { .. } => None,
    }
}

fn assistant_block(content: &Content) -> Option<Value> {
    match content {
        Content::Text { text } => text_block(text),
        Content::Reasoning { text, metadata } => {
            let of = |key: &str| {
                metadata
                    .as_ref()?
                    .pointer(&format!("/anthropic/{key}"))?
                    .as_str()
            };
            if let Some(data) = of("redactedData") {
                return Some(json!({"type": "redacted_thinking", "data": data}));
            }
            // Without its signature (it came from another provider) the API refuses it.
            of("signature").map(
                |signature| json!({"type": "thinking", "thinking": text, "signature": signature}),
            )
        }
        Content::ToolCall {
            call_id,
            tool,
            input,
            ..
        } => {
            let input = if input.is_object() {
                input.clone()
            } else {
                json!({"value": input})
            };
            Some(json!({"type": "tool_use", "id": clean_id(call_id), "name": tool, "input": input}))
        }
        Content::File { .. } => None,
    }
}

// The API accepts only letters, digits, `_` and `-`; other providers' identifiers contain more.
fn clean_id(id: &str) -> String {
    id.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::model::{ModelParams, ToolOffer};

    fn body(model: &ModelInfo, request: &ModelRequest) -> Object {
        super::body(model, request).into_object()
    }

    #[test]
    fn a_call_may_be_required() {
        let mut request = crate::testing::one_step(Vec::new(), ModelParams::default());
        request.tool_choice = ToolChoice::Required;
        let got = body(&ModelInfo::default(), &request);
        assert_eq!(got["tool_choice"], json!({"type": "any"}));
    }

    #[test]
    fn the_body_follows_the_messages_api() {
        let mut model = ModelInfo::default();
        model.api.id = "claude".into();
        model.capabilities.input.image = true;
        let call = |id: &str| Content::ToolCall {
            call_id: id.into(),
            tool: "read".into(),
            input: json!({"a": 1}),
            metadata: None,
        };
        let tool = |id: &str, is_error| ChatMessage::Tool {
            call_id: id.into(),
            tool: "read".into(),
            content: "R".into(),
            is_error,
        };
        let request = ModelRequest {
            messages: [
                ChatMessage::System {
                    content: "S".into(),
                },
                ChatMessage::User {
                    content: vec![
                        Content::Text { text: "hi".into() },
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
                            text: "t".into(),
                            metadata: Some(json!({"anthropic": {"signature": "sig"}})),
                        },
                        Content::Reasoning {
                            text: "unsigned".into(),
                            metadata: None,
                        },
                        Content::Text {
                            text: String::new(),
                        },
                        call("a|1"),
                        call("b"),
                    ],
                },
                tool("a|1", false),
                tool("b", true),
                ChatMessage::User {
                    content: vec![Content::Text { text: "go".into() }],
                },
            ]
            .into(),
            tools: vec![ToolOffer {
                name: "read".into(),
                description: "d".into(),
                parameters: json!({"type": "object"}),
            }],
            params: ModelParams {
                temperature: Some(0.5),
                max_output_tokens: Some(100),
                options: json!({"thinking": {"type": "enabled", "budgetTokens": 1024}})
                    .as_object()
                    .cloned()
                    .unwrap(),
                ..ModelParams::default()
            },
            headers: vec![],
            ..ModelRequest::default()
        };
        let lines: Vec<String> = body(&model, &request)
            .iter()
            .map(|(k, v)| match v {
                Value::Array(items) => format!(
                    "{k}\n{}",
                    items
                        .iter()
                        .map(|i| format!("  {i}"))
                        .collect::<Vec<_>>()
                        .join("\n")
                ),
                other => format!("{k} {other}"),
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        model "claude"
        max_tokens 1124
        thinking {"type":"enabled","budget_tokens":1024}
        system
          {"type":"text","text":"S","cache_control":{"type":"ephemeral"}}
        messages
          {"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}
          {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"sig"},{"type":"tool_use","id":"a_1","name":"read","input":{"a":1}},{"type":"tool_use","id":"b","name":"read","input":{"a":1},"cache_control":{"type":"ephemeral"}}]}
          {"role":"user","content":[{"type":"tool_result","tool_use_id":"a_1","content":"R"},{"type":"tool_result","tool_use_id":"b","content":"R","is_error":true},{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}]}
        tools
          {"name":"read","description":"d","input_schema":{"type":"object"}}
        tool_choice {"type":"auto"}
        stream true
        "#);
    }
}
