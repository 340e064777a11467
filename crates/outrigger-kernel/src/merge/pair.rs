//! A tool's start and its result as one message (E2).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use outrigger_protocol::Object;
use outrigger_protocol::merged::ConversationMessage;
use serde_json::{Value, json};

use super::PLUGIN;
use super::changed::changed_by;
use super::processors::{ToolProcessor, declared, failed};

/// What both say. The first processor that knows the tool describes it.
pub(super) fn pair(
    processors: &[Box<dyn ToolProcessor>],
    start: &ConversationMessage,
    result: &ConversationMessage,
) -> ConversationMessage {
    let field = |key: &str| {
        let own = start.metadata.get(key);
        own.or_else(|| result.metadata.get(key)).cloned()
    };
    let name = field("tool_name").unwrap_or_default();
    let name = name.as_str().unwrap_or_default();
    let plugin = field(PLUGIN);
    let known = processors.iter().filter(|_| plugin.is_none());
    let processor = known
        .filter(|it| it.tools().contains(&name))
        .map(Box::as_ref)
        .next();
    let described = declared(result);
    let details = processor
        .and_then(|it| it.details(start, result))
        .or(described.details);
    let summary = processor.and_then(|it| it.summary(start, result, details.as_ref()));
    let summary = summary
        .or(described.summary)
        .unwrap_or_else(|| format!("{name} completed"));
    let mut metadata = Object::new();
    let took = result.timestamp.saturating_sub(start.timestamp);
    for (key, value) in [
        ("tool_name", json!(name)),
        ("tool_use_id", field("tool_use_id").unwrap_or(Value::Null)),
        (
            "input",
            start.metadata.get("input").cloned().unwrap_or(Value::Null),
        ),
        ("output", output(result)),
        ("is_error", json!(failed(result))),
        ("duration_ms", json!(took)),
        ("summary", json!(summary)),
    ] {
        metadata.insert(key.to_string(), value);
    }
    if let Some(plugin) = plugin {
        metadata.insert(PLUGIN.to_string(), plugin);
    }
    metadata.extend(changed_by(result));
    if let Some(details) = details {
        metadata.insert("details".to_string(), json!(details));
    }
    let more = processor.map(|it| it.more(start, result));
    metadata.extend(more.unwrap_or_default());
    ConversationMessage {
        id: format!("{}-merged", start.id),
        role: "assistant".to_string(),
        message_type: "tool_execution".to_string(),
        content: summary,
        timestamp: start.timestamp,
        metadata,
    }
}

fn output(result: &ConversationMessage) -> Value {
    let output = result.metadata.get("output").cloned();
    output.unwrap_or_else(|| json!(String::clone(&result.content)))
}
