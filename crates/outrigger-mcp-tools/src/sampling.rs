//! Converts a server's request to the model (MCP, Sampling) to our own form.

use outrigger_protocol::model::{ChatMessage, Content};
use outrigger_tools::{SampleAnswer, SampleRequest};
use serde_json::{Value, json};

/// Maximum bytes of all input for the model.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum number of messages of a request.
const MAX_MESSAGES: usize = 100;

/// Reads the parameters of `sampling/createMessage`.
///
/// # Errors
/// What is invalid.
pub(crate) fn request(server: &str, params: &Value) -> Result<SampleRequest, String> {
    if params.to_string().len() > MAX_BYTES {
        return Err(format!("a request is limited to {} KiB", MAX_BYTES >> 10));
    }
    if params["tools"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
    {
        return Err("tools are not supported".to_owned());
    }
    let messages = params["messages"]
        .as_array()
        .ok_or("there are no messages")?;
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(format!("a request has 1 to {MAX_MESSAGES} messages"));
    }
    let messages = messages.iter().map(message).collect::<Result<_, _>>()?;
    let system = params["systemPrompt"].as_str();
    Ok(SampleRequest {
        server: server.to_owned(),
        system: system.filter(|text| !text.is_empty()).map(str::to_owned),
        messages,
        max_tokens: params["maxTokens"].as_u64(),
        temperature: params["temperature"].as_f64(),
    })
}

fn message(message: &Value) -> Result<ChatMessage, String> {
    let content = match &message["content"] {
        Value::Array(list) => list.iter().map(piece).collect::<Result<_, _>>()?,
        single => vec![piece(single)?],
    };
    match message["role"].as_str() {
        Some("user") => Ok(ChatMessage::User { content }),
        Some("assistant") => Ok(ChatMessage::Assistant { content }),
        _ => Err("a message must be from the user or the assistant".to_owned()),
    }
}

fn piece(content: &Value) -> Result<Content, String> {
    let text = |key: &str| content[key].as_str().map(str::to_owned);
    match (content["type"].as_str(), text("text"), text("data")) {
        (Some("text"), Some(text), _) => Ok(Content::Text { text }),
        (Some("image"), _, Some(data)) => {
            let mime = text("mimeType").unwrap_or_else(|| "image/png".to_owned());
            Ok(Content::File {
                url: format!("data:{mime};base64,{data}"),
                mime,
                filename: None,
            })
        }
        (kind, ..) => Err(format!(
            "content of the type {} is not supported",
            kind.unwrap_or("nothing")
        )),
    }
}

/// Creates the result for the server.
pub(crate) fn result(answer: &SampleAnswer) -> Value {
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": answer.text},
        "model": answer.model,
        "stopReason": "endTurn",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_what_is_not_supported_is_refused() {
        let text = |role: &str| json!({"role": role, "content": {"type": "text", "text": "hi"}});
        let read = request(
            "s",
            &json!({"messages": [text("user"), text("assistant")], "systemPrompt": "be kind", "maxTokens": 9}),
        ).unwrap();
        assert_eq!(read.messages.len(), 2);
        assert_eq!(
            (read.system.as_deref(), read.max_tokens),
            (Some("be kind"), Some(9))
        );
        for params in [
            json!({}),
            json!({"messages": []}),
            json!({"messages": [text("system")]}),
            json!({"messages": [{"role": "user", "content": {"type": "audio", "data": ""}}]}),
            json!({"messages": [text("user")], "tools": [{"name": "x"}]}),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "x".repeat(MAX_BYTES)}}]}),
        ] {
            assert!(request("s", &params).is_err());
        }
    }
}
