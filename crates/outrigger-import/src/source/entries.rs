//! Converts the entries of our own export to messages and parts.

use std::collections::BTreeMap;

use outrigger_api::Entry;
use outrigger_export::Exported;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::merged::{CHANGED_BY, ConversationMessage, Details, EXECUTOR, EntryState};
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, MessageWithParts, NamedError, Part, PartKind,
    PartTime, ReasoningPart, StepFinishPart, TextPart, ToolPart, ToolState, UserMessage,
};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use crate::program::Program;
use crate::transcript::{MAX_MESSAGES, Transcript};

/// Converts a conversation of a file.
pub(crate) fn messages(exported: Exported) -> Transcript {
    let Exported {
        conversation,
        origin,
        entries,
    } = exported;
    let mut transcript = Transcript {
        program: Program::Outrigger,
        id: conversation.id.0,
        parent: conversation.parent_id.map(|it| it.0),
        title: conversation.title,
        directory: conversation.directory,
        created: conversation.time.created,
        updated: conversation.time.updated,
        origin,
        ..Transcript::default()
    };
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        let (message, _) = entry.key.split_once('/').unwrap_or((&entry.key, ""));
        let place = match places.get(message) {
            Some(place) => *place,
            None if transcript.messages.len() >= MAX_MESSAGES => continue,
            None => {
                let place = transcript.messages.len();
                places.insert(message.to_owned(), place);
                transcript.messages.push(begun(message, &entry));
                place
            }
        };
        if let Some(message) = transcript.messages.get_mut(place) {
            add(message, entry);
        }
    }
    transcript
}

/// Creates the message whose first entry this is.
fn begun(id: &str, entry: &Entry) -> MessageWithParts {
    let time = MessageTime {
        created: entry.message.timestamp,
        completed: None,
    };
    let asked = entry.channel.attempt.clone();
    let info = if asked.as_str() == id {
        MessageInfo::User(UserMessage {
            id: id.into(),
            time,
            ..UserMessage::default()
        })
    } else {
        MessageInfo::Assistant(AssistantMessage {
            id: id.into(),
            parent_id: asked,
            time,
            ..AssistantMessage::default()
        })
    };
    MessageWithParts {
        info,
        parts: Vec::new(),
    }
}

fn add(message: &mut MessageWithParts, entry: Entry) {
    let Entry {
        state,
        message: said,
        ..
    } = entry;
    let took = said.metadata.get("duration_ms").and_then(Value::as_u64);
    let end = said.timestamp.saturating_add(took.unwrap_or_default());
    match &mut message.info {
        MessageInfo::Assistant(answer) => {
            let last = answer.time.completed.unwrap_or_default();
            answer.time.completed = Some(last.max(end));
            if has_time_of_message(&said) {
                answer.time.created = said.timestamp;
            }
            if said.message_type == "error" {
                answer.time.completed = Some(said.timestamp);
                let name = said.metadata.get("name").and_then(Value::as_str);
                answer.error = Some(NamedError::new(
                    name.unwrap_or("UnknownError"),
                    said.content,
                ));
                return;
            }
        }
        MessageInfo::User(user) if has_time_of_message(&said) => {
            user.time.created = said.timestamp;
        }
        MessageInfo::User(_) => {}
    }
    let Some(kind) = kind(said, state, end) else {
        return;
    };
    message.parts.push(Part {
        id: Default::default(),
        session_id: Default::default(),
        message_id: message.info.id().clone(),
        kind,
    });
}

/// Returns whether an entry has no time of its own.
fn has_time_of_message(said: &ConversationMessage) -> bool {
    let own = [
        "text",
        "reasoning",
        "tool_use",
        "tool_result",
        "tool_execution",
        "error",
    ];
    !own.contains(&said.message_type.as_str())
}

fn kind(said: ConversationMessage, state: EntryState, end: Millis) -> Option<PartKind> {
    let time = PartTime {
        start: said.timestamp,
        end: Some(end),
        compacted: None,
    };
    let flag = |key: &str| (said.metadata.get(key) == Some(&json!(true))).then_some(true);
    Some(match said.message_type.as_str() {
        "text" => PartKind::Text(TextPart {
            synthetic: flag("synthetic"),
            ignored: flag("ignored"),
            time: Some(time),
            text: said.content,
            ..TextPart::default()
        }),
        "reasoning" => PartKind::Reasoning(ReasoningPart {
            text: said.content,
            time,
            ..ReasoningPart::default()
        }),
        "tool_use" | "tool_result" | "tool_execution" => PartKind::Tool(call(said, state, time)),
        "file" => PartKind::File(said.metadata),
        "agent" => PartKind::Agent(said.metadata),
        "subtask" => PartKind::Subtask(said.metadata),
        "retry" => PartKind::Retry(said.metadata),
        "compaction" => PartKind::Compaction(said.metadata),
        "patch" => {
            let files = said
                .metadata
                .get("details")?
                .pointer("/data/files")
                .cloned();
            PartKind::Patch(Object::from_iter([("files".to_owned(), files?)]))
        }
        "step" => {
            let of = |key: &str| said.metadata.get(key).cloned().unwrap_or_default();
            PartKind::StepFinish(StepFinishPart {
                reason: of("reason").as_str().unwrap_or_default().to_owned(),
                snapshot: None,
                tokens: serde_json::from_value(of("tokens")).unwrap_or_default(),
                cost: of("cost").as_f64().unwrap_or_default(),
            })
        }
        // Content unknown to this version is kept as text.
        _ if said.content.is_empty() => return None,
        _ => PartKind::Text(TextPart {
            text: said.content,
            time: Some(time),
            ..TextPart::default()
        }),
    })
}

fn call(said: ConversationMessage, state: EntryState, time: PartTime) -> ToolPart {
    let text = |key: &str| {
        said.metadata
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let tool = text("tool_name").unwrap_or_default();
    let is_error = said.metadata.get("is_error") == Some(&json!(true));
    let half = match (said.message_type.as_str(), state) {
        ("tool_use", EntryState::Done) => Some("start"),
        ("tool_result", _) => Some("result"),
        _ => None,
    };
    let output = output(&said, half);
    let input = said.metadata.get("input").cloned().unwrap_or_default();
    let reported = match half {
        Some("result") => said.metadata.get("metadata").cloned().unwrap_or_default(),
        _ => Value::Object(reported(&said, &tool)),
    };
    let state = match (is_error || half == Some("start"), state) {
        (false, EntryState::Running) => ToolState::Running {
            input,
            title: None,
            metadata: None,
            time,
        },
        (true, _) => ToolState::Error {
            input,
            error: output,
            metadata: Some(reported),
            time,
        },
        (false, EntryState::Done) => ToolState::Completed {
            input,
            output,
            title: String::new(),
            metadata: reported,
            time,
            attachments: None,
        },
    };
    let plugin = text("plugin").map(PluginId);
    let provenance = plugin.map(|it| Provenance::default().by_replaced_tool(&it, &tool));
    ToolPart {
        call_id: text("tool_use_id").unwrap_or_default().into(),
        tool,
        state,
        metadata: None,
        provenance: provenance.unwrap_or_default(),
        extra: half
            .map(|half| ("unmatched".to_owned(), json!(half)))
            .into_iter()
            .collect(),
    }
}

fn output(said: &ConversationMessage, half: Option<&str>) -> String {
    match said.metadata.get("output") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None if half == Some("result") => said.content.clone(),
        None => "no result came".to_owned(),
    }
}

/// Reconstructs the tool's metadata for this display, under its own keys.
fn reported(said: &ConversationMessage, tool: &str) -> Object {
    let of = |key: &str| said.metadata.get(key);
    let mut reported = Object::new();
    let mut put = |key: &str, value: Value| reported.insert(key.to_owned(), value);
    put("summary", json!(said.content));
    for key in ["todos", "answers", EXECUTOR, CHANGED_BY] {
        if let Some(value) = of(key) {
            put(key, value.clone());
        }
    }
    if let Some(child) = of("conversation") {
        put("sessionId", child.clone());
    }
    if let Some(details) = of("details") {
        put("details", details.clone());
        detailed(said, tool, details, put);
    }
    reported
}

/// Reconstructs metadata from the details, by their kind.
fn detailed(
    said: &ConversationMessage,
    tool: &str,
    details: &Value,
    mut put: impl FnMut(&str, Value) -> Option<Value>,
) {
    let typed = serde_json::from_value::<Details>(details.clone());
    match typed {
        Ok(Details::Diff {
            old_content,
            new_content,
            path,
        }) if tool == "apply_patch" => {
            put(
                "files",
                json!([file(
                    &said.content,
                    path.as_deref(),
                    &old_content,
                    &new_content
                )]),
            );
        }
        Ok(Details::Diff {
            old_content,
            new_content,
            ..
        }) => {
            put(
                "filediff",
                json!({ "before": old_content, "after": new_content }),
            );
            put("exists", json!(!said.content.starts_with("Created ")));
        }
        Ok(Details::CommandOutput {
            stdout,
            stderr,
            exit_code,
        }) => {
            put("stdout", json!(stdout));
            put("stderr", json!(stderr));
            put("exit", json!(exit_code));
        }
        Ok(Details::FileList { files }) if tool == "read" => {
            put("display", json!({ "type": "directory", "entries": files }));
        }
        Ok(Details::FileList { files }) if tool == "apply_patch" => {
            let changes = said.metadata.get("changes").cloned().unwrap_or_default();
            let changes: Vec<Details> = serde_json::from_value(changes).unwrap_or_default();
            put("files", json!(patched(&said.content, &files, &changes)));
        }
        _ => {}
    }
}

fn patched(summary: &str, files: &[String], changes: &[Details]) -> Vec<Value> {
    let changed = |name: &str| {
        changes.iter().find_map(|change| match change {
            Details::Diff {
                old_content,
                new_content,
                path,
            } if path.as_deref() == Some(name) => {
                Some((old_content.as_str(), new_content.as_str()))
            }
            _ => None,
        })
    };
    let of = |name: &String| match changed(name) {
        Some((old, new)) => file(summary, Some(name), old, new),
        None => json!({ "relativePath": name, "type": kind_of(summary, name) }),
    };
    files.iter().map(of).collect()
}

/// Creates a file of a patch, with a diff that replaces the whole content.
fn file(summary: &str, path: Option<&str>, old: &str, new: &str) -> Value {
    let marked = |mark: char, text: &str| {
        text.lines()
            .map(|line| format!("{mark}{line}\n"))
            .collect::<String>()
    };
    let patch = format!("@@\n{}{}", marked('-', old), marked('+', new));
    let name = path.unwrap_or_default();
    json!({ "relativePath": path, "type": kind_of(summary, name), "patch": patch })
}

fn kind_of(summary: &str, name: &str) -> &'static str {
    let names = summary.strip_prefix("Patched ").unwrap_or_default();
    let has = |mark: char| {
        names
            .split(", ")
            .any(|it| it.strip_prefix(mark) == Some(name))
    };
    match (has('+'), has('-')) {
        (true, _) => "add",
        (_, true) => "delete",
        _ => "update",
    }
}
