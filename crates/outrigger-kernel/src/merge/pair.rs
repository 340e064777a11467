//! Start and result of a tool call as one message (E2).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::Object;
use outrigger_protocol::buffer::to_value;
use outrigger_protocol::merged::{ConversationMessage, Details, EXECUTOR};
use serde_json::{Value, json};

use super::PLUGIN;
use super::changed::attributed;
use super::processors::{ToolProcessor, declared, failed, reported};

/// Description of an execution.
struct Description {
    details: Option<Details>,
    summary: String,
    more: Object,
}

/// Describes an execution by the first processor that knows the tool. A plugin's tool with the name of a bundled one describes
/// itself.
fn describe(
    processors: &[Box<dyn ToolProcessor>],
    start: &ConversationMessage,
    result: &ConversationMessage,
) -> Description {
    let own = start.metadata.get("tool_name");
    let name = own
        .or_else(|| result.metadata.get("tool_name"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_plugins = start.metadata.contains_key(PLUGIN) || result.metadata.contains_key(PLUGIN);
    let known = processors.iter().filter(|_| !is_plugins);
    let processor = known
        .filter(|it| it.tools().contains(&name))
        .map(Box::as_ref)
        .next();
    let declared = declared(result);
    let details = processor
        .and_then(|it| it.details(start, result))
        .or(declared.details);
    let summary = processor.and_then(|it| it.summary(start, result, details.as_ref()));
    Description {
        summary: summary
            .or(declared.summary)
            .unwrap_or_else(|| format!("{name} completed")),
        more: processor
            .map(|it| it.more(start, result))
            .unwrap_or_default(),
        details,
    }
}

/// Merges start and result.
pub(super) fn pair(
    processors: &[Box<dyn ToolProcessor>],
    mut start: ConversationMessage,
    mut result: ConversationMessage,
) -> ConversationMessage {
    let Description {
        details,
        summary,
        more,
    } = describe(processors, &start, &result);
    let is_error = failed(&result);
    let attributed: Vec<_> = attributed(&result).collect();
    let made_by = made_by(&result);
    let took = result.timestamp.saturating_sub(start.timestamp);

    // Long texts are moved: merged messages are read again with each page.
    let mut field = |key: &str| {
        let own = start.metadata.swap_remove(key);
        own.or_else(|| result.metadata.swap_remove(key))
    };
    let (name, id, plugin) = (field("tool_name"), field("tool_use_id"), field(PLUGIN));
    let mut metadata = Object::new();
    for (key, value) in [
        ("tool_name", name.unwrap_or_else(|| json!(""))),
        ("tool_use_id", id.unwrap_or(Value::Null)),
        (
            "input",
            start.metadata.swap_remove("input").unwrap_or(Value::Null),
        ),
        ("output", output(result)),
        ("is_error", json!(is_error)),
        ("duration_ms", json!(took)),
        ("summary", json!(summary)),
    ] {
        metadata.insert(key.to_string(), value);
    }
    if let Some(plugin) = plugin {
        metadata.insert(PLUGIN.to_string(), plugin);
    }
    metadata.extend(attributed);
    metadata.extend(made_by);
    if let Some(details) = details {
        metadata.insert("details".to_string(), to_value(&details));
    }
    metadata.extend(more);
    ConversationMessage {
        id: format!("{}-merged", start.id),
        role: "assistant".to_string(),
        message_type: "tool_execution".to_string(),
        content: summary,
        timestamp: start.timestamp,
        metadata,
    }
}

fn output(mut result: ConversationMessage) -> Value {
    let output = result.metadata.swap_remove("output");
    output.unwrap_or(Value::String(result.content))
}

/// Returns who made the call, if another vendor's agent did.
fn made_by(result: &ConversationMessage) -> Option<(String, Value)> {
    let executor = reported(result, "/executor")?;
    Some((EXECUTOR.to_string(), executor.clone()))
}
