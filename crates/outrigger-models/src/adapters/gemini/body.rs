//! The request body. Keys and their order are those of OpenCode (recorded from 1.18.33).

use outrigger_protocol::Object;
use outrigger_protocol::model::{
    ChatMessage, Content, Messages, ModelInfo, ModelRequest, Role, ToolChoice,
};
use serde_json::{Value, json};

use super::schema;
use crate::adapters::body::{Body, Form, Items};
use crate::adapters::wire::js_number;
use crate::content::{FilePlan, data_of, plan_file};

/// Builds the body of a streaming request.
pub(crate) fn body(model: &ModelInfo, request: &ModelRequest) -> Body {
    let (config, top) = options(request);
    let mut out = Object::new();
    out.insert("generationConfig".into(), config.into());
    let (system, contents) = conversation(model, &request.messages);
    // Placeholder for the list.
    out.insert("contents".into(), Value::Null);
    if !system.is_empty() {
        out.insert("systemInstruction".into(), json!({"parts": system}));
    }
    out.extend(top);
    if !request.tools.is_empty() {
        let declare = |tool: &outrigger_protocol::model::ToolOffer| {
            let mut out = json!({"name": tool.name, "description": tool.description});
            if let (Some(map), Some(parameters)) =
                (out.as_object_mut(), schema::parameters(&tool.parameters))
            {
                map.insert("parameters".into(), parameters);
            }
            out
        };
        let declarations: Vec<Value> = request.tools.iter().map(declare).collect();
        out.insert(
            "tools".into(),
            json!([{"functionDeclarations": declarations}]),
        );
        out.insert(
            "toolConfig".into(),
            json!({"functionCallingConfig": {"mode": match request.tool_choice {
                ToolChoice::Auto => "AUTO",
                ToolChoice::Required => "ANY",
            }}}),
        );
    }
    Body::with_list(out, "contents", contents)
}

/// Splits options with the AI SDK's names: those next to the conversation, and the rest for `generationConfig`.
fn options(request: &ModelRequest) -> (Object, Object) {
    let params = &request.params;
    let (mut config, mut top) = (Object::new(), Object::new());
    if let Some(max) = params.max_output_tokens {
        config.insert("maxOutputTokens".into(), max.into());
    }
    for (key, value) in [
        ("temperature", params.temperature),
        ("topK", params.top_k),
        ("topP", params.top_p),
    ] {
        if let Some(value) = value {
            config.insert(key.into(), js_number(value));
        }
    }
    for (key, value) in &params.options {
        match key.as_str() {
            "safetySettings" | "cachedContent" | "labels" => top.insert(key.clone(), value.clone()),
            // For the AI SDK itself.
            "structuredOutputs" | "threshold" => None,
            _ => config.insert(key.clone(), value.clone()),
        };
    }
    (config, top)
}

/// Returns parts of the system instruction, and the items of `contents`.
fn conversation(model: &ModelInfo, messages: &Messages) -> (Vec<Value>, Items) {
    let form = Form::of("gemini", model);
    let system = messages.system().map(|text| json!({"text": text}));
    let mut items = Items::default();
    let all = messages.stretches(usize::MAX);
    let open = form.write(all, &mut items, |message, open, list| {
        let (role, whose) = match &**message {
            ChatMessage::System { .. } => return open,
            ChatMessage::User { .. } => ("user", Role::User),
            ChatMessage::Assistant { .. } => ("model", Role::Assistant),
            ChatMessage::Tool { .. } => ("user", Role::Tool),
        };
        form.read(
            message,
            |it| parts(model, it),
            |parts| {
                if parts.is_empty() {
                    return open;
                }
                // The results of one message's calls belong together.
                if whose == Role::Tool && open == Some(Role::Tool) {
                    list.push(',');
                } else {
                    if open.is_some() {
                        list.push_str("]}");
                    }
                    list.push_str(&format!(r#",{{"role":"{role}","parts":["#));
                }
                list.push_str(parts);
                Some(whose)
            },
        )
    });
    if open.is_some() {
        items.end().push_str("]}");
    }
    (system.collect(), items)
}

fn parts(model: &ModelInfo, message: &ChatMessage) -> Vec<Value> {
    match message {
        ChatMessage::System { .. } => Vec::new(),
        ChatMessage::User { content } => {
            content.iter().filter_map(|c| user_part(model, c)).collect()
        }
        ChatMessage::Assistant { content } => content.iter().filter_map(model_part).collect(),
        ChatMessage::Tool { tool, content, .. } => vec![
            json!({"functionResponse": {"name": tool, "response": {"name": tool, "content": content}}}),
        ],
    }
}

fn user_part(model: &ModelInfo, content: &Content) -> Option<Value> {
    let text = |text: &str| json!({"text": text});
    Some(match content {
        Content::Text { text: t } => text(t),
        Content::File {
            mime,
            url,
            filename,
        } => match plan_file(model, mime, url, filename.as_deref()) {
            FilePlan::Say(words) => text(&words),
            _ => match data_of(url) {
                Some(data) => json!({"inlineData": {"mimeType": mime, "data": data}}),
                None => json!({"fileData": {"mimeType": mime, "fileUri": url}}),
            },
        },
        Content::Reasoning { .. } | Content::ToolCall { .. } => return None,
    })
}

/// Converts a part of the model's message. Thoughts and calls are returned with their signature; without it the service
/// refuses a call.
fn model_part(content: &Content) -> Option<Value> {
    let (mut part, metadata) = match content {
        Content::Text { text } if !text.is_empty() => (json!({"text": text}), None),
        Content::Reasoning { text, metadata } if !text.is_empty() => {
            (json!({"text": text, "thought": true}), metadata.as_ref())
        }
        Content::ToolCall {
            tool,
            input,
            metadata,
            ..
        } => (
            json!({"functionCall": {"name": tool, "args": input}}),
            metadata.as_ref(),
        ),
        _ => return None,
    };
    let signature = metadata.and_then(|m| m.pointer("/google/thoughtSignature"));
    if let (Some(signature), Some(map)) = (signature, part.as_object_mut()) {
        map.insert("thoughtSignature".into(), signature.clone());
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::model::{ModelParams, ToolOffer};

    fn body(model: &ModelInfo, request: &ModelRequest) -> Object {
        super::body(model, request).into_object()
    }

    #[test]
    fn the_body_is_that_of_opencode() {
        let text = |t: &str| Content::Text { text: t.into() };
        let call = |id: &str, metadata| Content::ToolCall {
            call_id: id.into(),
            tool: "read".into(),
            input: json!({"filePath": "/a"}),
            metadata,
        };
        let answer = |id: &str| ChatMessage::Tool {
            call_id: id.into(),
            tool: "read".into(),
            content: "A".into(),
            is_error: false,
        };
        let mut model = ModelInfo::default();
        model.capabilities.input.image = true;
        let file = Content::File {
            mime: "image/png".into(),
            url: "data:image/png;base64,AAAA".into(),
            filename: None,
        };
        let request = ModelRequest {
            messages: [
                ChatMessage::System {
                    content: "S".into(),
                },
                ChatMessage::User {
                    content: vec![text("hi"), file],
                },
                ChatMessage::Assistant {
                    content: vec![
                        Content::Reasoning {
                            text: "think".into(),
                            metadata: None,
                        },
                        text("let me look"),
                        call("c1", Some(json!({"google": {"thoughtSignature": "sig"}}))),
                        call("c2", None),
                    ],
                },
                answer("c1"),
                answer("c2"),
            ]
            .into(),
            tools: vec![ToolOffer {
                name: "read".into(),
                description: "d".into(),
                parameters: json!({"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}),
            }],
            params: ModelParams {
                temperature: Some(1.0),
                top_k: Some(64.0),
                top_p: Some(0.95),
                max_output_tokens: Some(32000),
                options: json!({"thinkingConfig": {"includeThoughts": true}, "safetySettings": []})
                    .as_object()
                    .cloned()
                    .unwrap(),
            },
            headers: vec![],
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
    generationConfig {"maxOutputTokens":32000,"temperature":1,"topK":64,"topP":0.95,"thinkingConfig":{"includeThoughts":true}}
    contents
      {"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}
      {"role":"model","parts":[{"text":"think","thought":true},{"text":"let me look"},{"functionCall":{"name":"read","args":{"filePath":"/a"}},"thoughtSignature":"sig"},{"functionCall":{"name":"read","args":{"filePath":"/a"}}}]}
      {"role":"user","parts":[{"functionResponse":{"name":"read","response":{"name":"read","content":"A"}}},{"functionResponse":{"name":"read","response":{"name":"read","content":"A"}}}]}
    systemInstruction {"parts":[{"text":"S"}]}
    safetySettings
    tools
      {"functionDeclarations":[{"name":"read","description":"d","parameters":{"required":["filePath"],"type":"object","properties":{"filePath":{"type":"string"}}}}]}
    toolConfig {"functionCallingConfig":{"mode":"AUTO"}}
    "#);
    }

    /// The service refuses a history in which the results of one message's calls are not together, or come before another
    /// message's calls.
    #[test]
    fn answers_stand_behind_their_calls_by_table() {
        let call = |id: &str, tool: &str| Content::ToolCall {
            call_id: id.into(),
            tool: tool.into(),
            input: json!({}),
            metadata: None,
        };
        let calls = |list: &[(&str, &str)]| ChatMessage::Assistant {
            content: list.iter().map(|(id, tool)| call(id, tool)).collect(),
        };
        let answer = |id: &str, tool: &str, text: &str, is_error| ChatMessage::Tool {
            call_id: id.into(),
            tool: tool.into(),
            content: text.into(),
            is_error,
        };
        let user = |text: &str| ChatMessage::User {
            content: vec![Content::Text { text: text.into() }],
        };
        for (name, messages, want) in [
            (
                "a failure becomes its text",
                vec![
                    calls(&[("c1", "read")]),
                    answer("c1", "read", "no such file", true),
                ],
                "model read() | user read=no such file",
            ),
            (
                "parallel calls, answered in another order",
                vec![
                    calls(&[("c1", "read"), ("c2", "glob")]),
                    answer("c2", "glob", "G", false),
                    answer("c1", "read", "", true),
                ],
                "model read() glob() | user glob=G read=",
            ),
            (
                "two steps",
                vec![
                    calls(&[("c1", "read")]),
                    answer("c1", "read", "A", false),
                    calls(&[("c2", "read")]),
                    answer("c2", "read", "B", false),
                ],
                "model read() | user read=A | model read() | user read=B",
            ),
            (
                "a prompt behind the answers is not an answer",
                vec![
                    calls(&[("c1", "read")]),
                    answer("c1", "read", "A", false),
                    user("and now?"),
                ],
                "model read() | user read=A | user and now?",
            ),
            (
                "a message with nothing in it is skipped, and parts no answers",
                vec![
                    calls(&[("c1", "read"), ("c2", "read")]),
                    answer("c1", "read", "A", false),
                    calls(&[]),
                    answer("c2", "read", "B", false),
                ],
                "model read() read() | user read=A read=B",
            ),
        ] {
            let (_, contents) = conversation(&ModelInfo::default(), &messages.into());
            let contents = contents.into_values();
            let part = |part: &Value| {
                let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
                match (part.get("functionCall"), part.get("functionResponse")) {
                    (Some(call), _) => format!("{}()", text(&call["name"])),
                    (_, Some(answer)) => {
                        assert_eq!(answer["name"], answer["response"]["name"]);
                        format!(
                            "{}={}",
                            text(&answer["name"]),
                            text(&answer["response"]["content"])
                        )
                    }
                    _ => text(&part["text"]),
                }
            };
            let texts: Vec<String> = contents
                .iter()
                .map(|content| {
                    let parts: Vec<String> = content["parts"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(part)
                        .collect();
                    format!("{} {}", content["role"].as_str().unwrap(), parts.join(" "))
                })
                .collect();
            assert_eq!(texts.join(" | "), want, "{name}");
        }
    }

    #[test]
    fn a_call_may_be_required() {
        let params = outrigger_protocol::model::ModelParams::default();
        let mut request = crate::testing::one_step(Vec::new(), params);
        request.tool_choice = ToolChoice::Required;
        let got = body(&ModelInfo::default(), &request);
        let mode = &got["toolConfig"]["functionCallingConfig"]["mode"];
        assert_eq!(mode, "ANY");
    }

    #[test]
    fn the_address_names_the_model() {
        assert_eq!(
            super::super::path("g1"),
            "models/g1:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            super::super::path("tuned/g1"),
            "tuned/g1:streamGenerateContent?alt=sse"
        );
    }
}
