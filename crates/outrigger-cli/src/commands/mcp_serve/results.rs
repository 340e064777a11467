//! Tool results in MCP's form.

use outrigger_protocol::tool::ToolOutcome;
use serde_json::{Value, json};

/// Creates a text.
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Creates an error.
pub(super) fn failure(reason: &str) -> Value {
    let mut result = text(reason);
    result["isError"] = true.into();
    result
}

/// Converts the result of a call.
pub(super) fn of_tool(outcome: &ToolOutcome) -> Value {
    let output = match outcome {
        ToolOutcome::Completed { output, .. } => output,
        ToolOutcome::Failed { message, .. } => return failure(message),
    };
    let mut result = text(&output.output);
    if let Some(content) = result["content"].as_array_mut() {
        let files = output.attachments.iter().flatten();
        content.extend(files.filter_map(file));
        // A tool that returns only an image has no text.
        if output.output.is_empty() && content.len() > 1 {
            content.remove(0);
        }
    }
    result
}

/// Converts a file, which contains its bytes in its URL.
fn file(file: &Value) -> Option<Value> {
    let url = file["url"].as_str()?;
    let (head, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let mime = file["mime"].as_str().unwrap_or(head);
    let kind = mime.split('/').next().unwrap_or_default();
    Some(match kind {
        "image" | "audio" => json!({"type": kind, "data": data, "mimeType": mime}),
        _ => {
            let name = file["filename"].as_str().unwrap_or("file");
            json!({"type": "resource", "resource": {"uri": format!("attachment:{name}"), "mimeType": mime, "blob": data}})
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::tool::ToolOutput;

    #[test]
    fn files_become_content_of_their_kind() {
        let output = ToolOutput {
            output: String::new(),
            attachments: Some(vec![
                json!({"mime": "image/png", "url": "data:image/png;base64,AAAA"}),
                json!({"mime": "application/pdf", "filename": "a.pdf", "url": "data:application/pdf;base64,BBBB"}),
                json!({"mime": "text/plain", "url": "file:///etc/passwd"}),
            ]),
            ..ToolOutput::default()
        };
        let outcome = ToolOutcome::Completed {
            input: json!({}),
            output,
        };
        insta::assert_snapshot!(of_tool(&outcome), @r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource","resource":{"uri":"attachment:a.pdf","mimeType":"application/pdf","blob":"BBBB"}}]}"#);
    }
}
