//! The request body. Keys and their order are those of OpenCode (recorded from 1.18.33).

use outrigger_protocol::Object;
use outrigger_protocol::model::{ChatMessage, Content, ModelInfo, ModelRequest};
use serde_json::{Value, json};

use crate::adapters::body::{Body, Form, Items};
use crate::adapters::wire::js_number;
use crate::content::{FilePlan, plan_file};

/// Builds the body of a streaming request.
pub(crate) fn body(model: &ModelInfo, request: &ModelRequest) -> Body {
    let params = &request.params;
    let reasons = reasons(model);
    let dialect = ResponsesDialect {
        reasons,
        stores: params.options.get("store") != Some(&Value::Bool(false)),
    };
    let mut out = Object::new();
    out.insert("model".into(), model.api.id.clone().into());
    // Placeholder for the list.
    out.insert("input".into(), Value::Null);
    // Reasoning models accept no sampling parameters unless their reasoning is disabled.
    let thinks = reasons && params.options.get("reasoningEffort") != Some(&json!("none"));
    for (key, value) in [("temperature", params.temperature), ("top_p", params.top_p)] {
        if let (Some(value), false) = (value, thinks) {
            out.insert(key.into(), js_number(value));
        }
    }
    // OpenCode sends no limit to OpenAI itself.
    if let (Some(max), false) = (params.max_output_tokens, model.provider_id == "openai") {
        out.insert("max_output_tokens".into(), max.into());
    }
    options(params.options.clone(), reasons, &mut out);
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|t| {
                json!({"type": "function", "name": t.name, "description": t.description,
                    "parameters": t.parameters, "strict": false})
            })
            .collect();
        out.insert("tools".into(), tools.into());
        let choice = crate::adapters::openai::choice(request.tool_choice);
        out.insert("tool_choice".into(), choice.into());
    }
    out.insert("stream".into(), true.into());
    Body::with_list(out, "input", dialect.input(model, request))
}

/// Converts a request for a ChatGPT login: instructions are separate from the conversation, as in OpenCode.
pub(crate) fn with_instructions(request: &ModelRequest) -> ModelRequest {
    let mut request = request.clone();
    let system: Vec<&str> = request.messages.system().collect();
    let instructions = system.join("\n");
    request.messages.remove_system();
    let options = &mut request.params.options;
    options.insert("instructions".into(), instructions.into());
    request
}

fn reasons(model: &ModelInfo) -> bool {
    model.capabilities.reasoning
}

/// Converts options with the AI SDK's names to those of the API. Unknown ones are unchanged.
fn options(options: Object, reasons: bool, out: &mut Object) {
    let mut reasoning = Object::new();
    let mut text = Object::new();
    for (key, value) in options {
        let name = match key.as_str() {
            "reasoningEffort" => {
                reasoning.insert("effort".into(), value);
                continue;
            }
            "reasoningSummary" => {
                reasoning.insert("summary".into(), value);
                continue;
            }
            "textVerbosity" => {
                text.insert("verbosity".into(), value);
                continue;
            }
            "promptCacheKey" => "prompt_cache_key",
            "promptCacheRetention" => "prompt_cache_retention",
            "serviceTier" => "service_tier",
            "safetyIdentifier" => "safety_identifier",
            "previousResponseId" => "previous_response_id",
            "parallelToolCalls" => "parallel_tool_calls",
            "maxToolCalls" => "max_tool_calls",
            // For the AI SDK itself.
            "forceReasoning" | "strictJsonSchema" | "systemMessageMode" => continue,
            other => other,
        };
        out.insert(name.to_owned(), value);
    }
    if reasons && !reasoning.is_empty() {
        out.insert("reasoning".into(), reasoning.into());
    }
    if !text.is_empty() {
        out.insert("text".into(), text.into());
    }
}

/// What the form of a conversation depends on.
#[derive(Clone, Copy, Hash)]
struct ResponsesDialect {
    /// The model reasons: it has developer messages instead of system messages.
    reasons: bool,
    /// The provider stores the conversation, so items are referred to by their id.
    stores: bool,
}

impl ResponsesDialect {
    /// Returns the items of the conversation.
    fn input(self, model: &ModelInfo, request: &ModelRequest) -> Items {
        let form = Form::of(("responses", self), model);
        form.list(&request.messages, |it| self.items(model, it))
    }

    fn items(self, model: &ModelInfo, message: &ChatMessage) -> Vec<Value> {
        match message {
            ChatMessage::System { content } => {
                let role = if self.reasons { "developer" } else { "system" };
                vec![json!({"role": role, "content": content})]
            }
            ChatMessage::User { content } => {
                let parts: Vec<Value> =
                    content.iter().filter_map(|c| user_part(model, c)).collect();
                vec![json!({"role": "user", "content": parts})]
            }
            ChatMessage::Assistant { content } => self.assistant(content),
            ChatMessage::Tool {
                call_id, content, ..
            } => {
                vec![json!({"type": "function_call_output", "call_id": call_id, "output": content})]
            }
        }
    }

    fn assistant(self, content: &[Content]) -> Vec<Value> {
        let mut out = Vec::new();
        for part in content {
            match part {
                Content::Text { text } => out.push(json!({"role": "assistant",
                    "content": [{"type": "output_text", "text": text}]})),
                Content::Reasoning { text, metadata } => {
                    if let Some(item) = reasoning(text, metadata.as_ref(), self.stores) {
                        out.push(item);
                    }
                }
                Content::ToolCall {
                    call_id,
                    tool,
                    input,
                    ..
                } => out.push(
                    json!({"type": "function_call", "call_id": call_id, "name": tool,
                    "arguments": input.to_string()}),
                ),
                Content::File { .. } => {}
            }
        }
        out
    }
}

fn user_part(model: &ModelInfo, content: &Content) -> Option<Value> {
    let text = |text: &str| json!({"type": "input_text", "text": text});
    Some(match content {
        Content::Text { text: t } => text(t),
        Content::File {
            mime,
            url,
            filename,
        } => match plan_file(model, mime, url, filename.as_deref()) {
            FilePlan::Image => json!({"type": "input_image", "image_url": url}),
            FilePlan::Pdf if url.starts_with("data:") => json!({"type": "input_file",
                "filename": filename.as_deref().unwrap_or("file.pdf"), "file_data": url}),
            FilePlan::Pdf => json!({"type": "input_file", "file_url": url}),
            FilePlan::Audio { data, format } => {
                json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
            }
            FilePlan::Say(words) => text(&words),
        },
        Content::Reasoning { .. } | Content::ToolCall { .. } => return None,
    })
}

/// Converts reasoning. It is sent back encrypted, as received; without that (another provider's, or the earlier
/// parts of one item) it is omitted.
fn reasoning(text: &str, metadata: Option<&Value>, stored: bool) -> Option<Value> {
    let of = |key: &str| {
        metadata?
            .pointer(&format!("/openai/{key}"))?
            .as_str()
            .map(str::to_owned)
    };
    let encrypted = of("reasoningEncryptedContent")?;
    let summary: Vec<Value> = if text.is_empty() {
        Vec::new()
    } else {
        vec![json!({"type": "summary_text", "text": text})]
    };
    let mut item = Object::new();
    item.insert("type".into(), "reasoning".into());
    if let (Some(id), true) = (of("itemId"), stored) {
        item.insert("id".into(), id.into());
    }
    item.insert("encrypted_content".into(), encrypted.into());
    item.insert("summary".into(), summary.into());
    Some(item.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{one_step, text};
    use outrigger_protocol::model::ModelParams;

    fn body(model: &ModelInfo, request: &ModelRequest) -> Object {
        super::body(model, request).into_object()
    }

    fn request(options: Value) -> ModelRequest {
        let thought = |t: &str, metadata| Content::Reasoning {
            text: t.into(),
            metadata,
        };
        let said = vec![
            thought("think", Some(json!({"openai": {"itemId": "rs_1"}}))),
            thought(
                "more",
                Some(json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}})),
            ),
            thought("foreign", None),
            text("let me look"),
        ];
        let params = ModelParams {
            temperature: Some(0.5),
            options: options.as_object().cloned().unwrap(),
            ..ModelParams::default()
        };
        one_step(said, params)
    }

    #[test]
    fn a_call_may_be_required() {
        let mut request = request(json!({}));
        request.tool_choice = outrigger_protocol::model::ToolChoice::Required;
        let got = body(&ModelInfo::default(), &request);
        assert_eq!(got["tool_choice"], "required");
    }

    #[test]
    fn a_login_has_its_instructions_apart() {
        let request = with_instructions(&request(json!({})));
        let got = body(&ModelInfo::default(), &request);
        assert_eq!(
            (&got["instructions"], &got["input"][0]["role"]),
            (&json!("S"), &json!("user"))
        );
    }

    fn lines(body: &Object) -> String {
        let line = |(key, value): (&String, &Value)| match value {
            Value::Array(items) => items
                .iter()
                .fold(key.clone(), |out, i| format!("{out}\n  {i}")),
            other => format!("{key} {other}"),
        };
        body.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_body_is_that_of_opencode() {
        let mut model = ModelInfo::default();
        model.api.id = "gpt-5".into();
        model.capabilities.reasoning = true;
        let options = json!({"store": false, "include": ["reasoning.encrypted_content"], "promptCacheKey": "ses_1",
            "reasoningEffort": "medium", "reasoningSummary": "auto", "textVerbosity": "low", "forceReasoning": true});
        insta::assert_snapshot!(lines(&body(&model, &request(options))), @r#"
        model "gpt-5"
        input
          {"role":"developer","content":"S"}
          {"role":"user","content":[{"type":"input_text","text":"hi"}]}
          {"type":"reasoning","encrypted_content":"enc","summary":[{"type":"summary_text","text":"more"}]}
          {"role":"assistant","content":[{"type":"output_text","text":"let me look"}]}
          {"type":"function_call","call_id":"c1","name":"read","arguments":"{\"filePath\":\"/a\"}"}
          {"type":"function_call_output","call_id":"c1","output":"A"}
        store false
        include
          "reasoning.encrypted_content"
        prompt_cache_key "ses_1"
        reasoning {"effort":"medium","summary":"auto"}
        text {"verbosity":"low"}
        tools
          {"type":"function","name":"read","description":"d","parameters":{"type":"object"},"strict":false}
        tool_choice "auto"
        stream true
        "#);
        // Without reasoning: a system message, sampling parameters, and no reasoning items.
        model.capabilities.reasoning = false;
        let plain = body(&model, &request(json!({"reasoningEffort": "low"})));
        assert_eq!(plain["input"][0]["role"], "system");
        assert_eq!(plain["temperature"], 0.5);
        assert!(plain.get("reasoning").is_none());
    }
}
