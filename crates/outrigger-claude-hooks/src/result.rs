//! The result of a tool as commands read it (`tool_response`), and their replacement for it (`updatedToolOutput`).

use serde_json::{Map, Value, json};

/// Returns the result in a form that commands understand: Outrigger's, with Claude Code's keys added.
pub(crate) fn response(tool: &str, args: &Value, output: &Value) -> Value {
    let mut response = match output {
        Value::Object(fields) => fields.clone(),
        other => return other.clone(),
    };
    let text = response.get("output").cloned();
    if let ("bash" | "python", Some(text)) = (tool, text) {
        response.insert("stdout".to_owned(), text);
        response.insert("stderr".to_owned(), json!(""));
        response.insert("interrupted".to_owned(), json!(false));
    }
    if let Some(path) = args.get("file_path") {
        response.insert("filePath".to_owned(), path.clone());
    }
    response.entry("success").or_insert(Value::Bool(true));
    Value::Object(response)
}

/// Returns the result of a failed command or script as text; `None` for a successful one, and for other tools.
pub(crate) fn failed_command(input: &Value, output: &Value) -> Option<String> {
    if !matches!(input.get("tool")?.as_str(), Some("bash" | "python")) {
        return None;
    }
    let said = output
        .get("output")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match output.get("metadata")?.get("exit")? {
        Value::Number(code) if code.as_f64() == Some(0.0) => None,
        Value::Number(code) => Some(format!("Exit code {code}\n{said}")),
        _ => Some(said.to_owned()),
    }
}

/// Returns the changes of a result. What is removed is removed for good: the answer's text is found in whichever form it was
/// given, and an answer of no known form is what the model reads. Display copies of the text are replaced too, and references
/// to other copies (the two streams, the file with all of it) are removed.
pub(crate) fn replaced(output: &Value, instead: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    if output.get("content").is_some_and(Value::is_array) {
        let content = instead.get("content").unwrap_or(instead);
        let blocks = match content {
            Value::Array(blocks) if blocks.iter().all(|block| block.get("type").is_some()) => {
                blocks.clone()
            }
            other => vec![json!({"type": "text", "text": plain(other)})],
        };
        fields.insert("content".to_owned(), Value::Array(blocks));
    } else {
        let text = text_of(output, instead);
        if Some(text.as_str()) == output.get("output").and_then(Value::as_str) {
            return fields;
        }
        fields.insert("output".to_owned(), json!(text));
        if let Some(Value::Object(metadata)) = output.get("metadata") {
            let mut metadata = metadata.clone();
            for key in ["output", "preview"] {
                if let Some(copy) = metadata.get_mut(key).filter(|copy| copy.is_string()) {
                    *copy = json!(text);
                }
            }
            metadata.retain(|key, _| !["stdout", "stderr", "outputPath"].contains(&key.as_str()));
            fields.insert("metadata".to_owned(), Value::Object(metadata));
        }
        return fields;
    }
    if output.get("structuredContent").is_some() {
        let structured = instead.get("structuredContent").cloned();
        fields.insert(
            "structuredContent".to_owned(),
            structured.unwrap_or(Value::Null),
        );
    }
    fields
}

/// Returns the text of an answer. A copy of the input has the same text under several keys: the changed one is used.
fn text_of(output: &Value, instead: &Value) -> String {
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let before = text(output, "output").unwrap_or_default();
    let streams = text(instead, "stdout").map(|stdout| {
        let stderr = text(instead, "stderr").unwrap_or_default();
        [stdout, stderr]
            .into_iter()
            .filter(|stream| !stream.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    });
    let file = instead.get("file").and_then(|file| text(file, "content"));
    let forms = [
        streams,
        text(instead, "output"),
        file,
        text(instead, "content"),
    ];
    let known: Vec<String> = forms.into_iter().flatten().collect();
    known
        .iter()
        .find(|form| **form != before)
        .or(known.first())
        .cloned()
        .unwrap_or_else(|| plain(instead))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_takes_out_is_out_in_every_form() {
        let bash = json!({"title": "t", "output": "key=1\n", "metadata": {"output": "key=1\n", "exit": 0}});
        let redacted =
            |text: &str| json!({"output": text, "metadata": {"output": text, "exit": 0}});
        let copied = |key: &str| {
            let mut copy = response("bash", &json!({}), &bash);
            copy[key] = json!("key=?\n");
            copy
        };
        for (instead, want) in [
            (json!("key=?\n"), redacted("key=?\n")),
            (copied("stdout"), redacted("key=?\n")),
            (copied("output"), redacted("key=?\n")),
            (json!({"stdout": "a", "stderr": "b"}), redacted("a\nb")),
            (json!({"output": ""}), redacted("")),
            (json!({"file": {"content": "c"}}), redacted("c")),
            (
                json!(["of", "no", "form"]),
                redacted("[\"of\",\"no\",\"form\"]"),
            ),
            (response("bash", &json!({}), &bash), json!({})),
        ] {
            assert_eq!(Value::Object(replaced(&bash, &instead)), want, "{instead}");
        }
        let mut long = bash.clone();
        for (key, value) in [
            ("stdout", ""),
            ("stderr", "key=1\n"),
            ("outputPath", "/tmp/all"),
        ] {
            long["metadata"][key] = json!(value);
        }
        let left = Value::Object(replaced(&long, &json!("key=?\n")));
        assert_eq!(left, redacted("key=?\n"));
        let mcp =
            json!({"content": [{"type": "text", "text": "key"}], "structuredContent": {"key": 1}});
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        for (instead, want) in [
            (
                json!("?"),
                json!({"content": text("?"), "structuredContent": null}),
            ),
            (
                text("?"),
                json!({"content": text("?"), "structuredContent": null}),
            ),
            (
                json!({"content": text("?"), "structuredContent": {"key": 0}}),
                json!({"content": text("?"), "structuredContent": {"key": 0}}),
            ),
        ] {
            assert_eq!(Value::Object(replaced(&mcp, &instead)), want, "{instead}");
        }
    }
}
