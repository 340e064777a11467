//! Converts items of Codex's files to its output form.

use serde_json::{Map, Value, json};

use super::command_line;
use crate::calls::text;

/// Converts an item: other names, the same data.
pub(super) fn in_printed_form(item: &Value) -> Value {
    let Value::Object(fields) = item else {
        return Value::Null;
    };
    let mut fields: Map<String, Value> = fields
        .iter()
        .map(|(key, value)| (camel(key), value.clone()))
        .collect();
    let of = |key: &str| item.get(key).cloned().unwrap_or_default();
    let kind = text(item, "/type").map(camel).unwrap_or_default();
    match kind.as_str() {
        "commandExecution" => {
            let words: Vec<&str> = item
                .get("command")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if !words.is_empty() {
                fields.insert("command".to_owned(), json!(command_line(&words)));
            }
            fields.remove("cwd");
        }
        "fileChange" => {
            let changes = item
                .get("changes")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(path, change)| {
                    let diff = text(change, "/unified_diff").or(text(change, "/content"));
                    let kind =
                        json!({ "type": change.get("type"), "move_path": change.get("move_path") });
                    json!({ "path": path, "kind": kind, "diff": diff })
                });
            fields.insert("changes".to_owned(), changes.collect());
        }
        "agentMessage" => {
            let said = joined(item.get("content"));
            fields.insert("text".to_owned(), json!(said));
        }
        "reasoning" => {
            fields.insert("summary".to_owned(), of("summary_text"));
            fields.insert("content".to_owned(), of("raw_content"));
        }
        _ => {}
    }
    fields.insert("type".to_owned(), json!(kind));
    Value::Object(fields)
}

/// Converts `CommandExecution` and `exit_code` to `commandExecution` and `exitCode`.
fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut is_word = false;
    for c in name.chars() {
        match c {
            '_' => is_word = true,
            c if is_word => {
                out.push(c.to_ascii_uppercase());
                is_word = false;
            }
            c if out.is_empty() => out.push(c.to_ascii_lowercase()),
            c => out.push(c),
        }
    }
    out
}

fn joined(content: Option<&Value>) -> String {
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| text(block, "/text")).collect();
    texts.join("\n\n")
}
