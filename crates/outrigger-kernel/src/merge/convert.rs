//! Conversion of stored messages and parts to messages of the conversation.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::buffer::{from_value, to_value};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::merged::{Change, ConversationMessage, Details, EntryState, Placed};
use outrigger_protocol::message::{MessageInfo, Part, PartKind, PartTime, ToolPart, ToolState};
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use super::PLUGIN;
use super::agents::{UNMATCHED, UNMATCHED_RESULT, UNMATCHED_START};
use super::pair::pair;
use super::processors::{ToolProcessor, bundled};

/// Form of tool calls in a conversation (E5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Start and result are one message.
    #[default]
    Merged,
    /// Start and result are two messages.
    Apart,
}

/// Data that the messages of a part take from its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// `user` or `assistant`.
    pub role: &'static str,
    /// When the message was created.
    pub created: Millis,
    /// The prompt that it is, or that it answers.
    pub attempt: MessageId,
}

impl From<&MessageInfo> for Author {
    fn from(info: &MessageInfo) -> Self {
        match info {
            MessageInfo::User(user) => Self {
                role: "user",
                created: user.time.created,
                attempt: user.id.clone(),
            },
            MessageInfo::Assistant(assistant) => Self {
                role: "assistant",
                created: assistant.time.created,
                attempt: assistant.parent_id.clone(),
            },
        }
    }
}

/// Creates messages of the conversation.
pub struct Converter {
    processors: Vec<Box<dyn ToolProcessor>>,
}

impl Default for Converter {
    fn default() -> Self {
        Self::new(bundled())
    }
}

impl Converter {
    /// Creates a converter with these processors; the first that knows a tool describes it.
    #[must_use]
    pub fn new(processors: Vec<Box<dyn ToolProcessor>>) -> Self {
        Self { processors }
    }

    /// Returns the messages of a part. They depend on nothing else, so every conversion of the part gives the same result.
    #[must_use]
    pub fn part(&self, author: &Author, part: &Part, form: Form) -> Vec<Placed> {
        let key = format!("{}/{}", part.message_id, part.id);
        match &part.kind {
            PartKind::Tool(call) => self.call(author, part, call, form),
            _ => text_of(author, part)
                .map(|(state, message)| Placed {
                    key,
                    state,
                    message,
                })
                .into_iter()
                .collect(),
        }
    }

    /// Returns the changes of an event; empty for most. `author`: that of the part's message, if known.
    #[must_use]
    pub fn event(&self, event: &Event, author: Option<&Author>, form: Form) -> Vec<Change> {
        match event {
            Event::MessageUpdated { info, .. } => {
                Self::info(info).map(Change::Put).into_iter().collect()
            }
            Event::PartUpdated { part, .. } => {
                // The message of a part is stored before it; an unknown one can only be a model's.
                let unknown = || Author {
                    role: "assistant",
                    created: 0,
                    attempt: part.message_id.clone(),
                };
                let author = author.cloned().unwrap_or_else(unknown);
                self.part(&author, part, form)
                    .into_iter()
                    .map(Change::Put)
                    .collect()
            }
            Event::MessageRemoved { message_id, .. } => {
                vec![Change::Remove(message_id.to_string())]
            }
            Event::PartRemoved {
                message_id,
                part_id,
                ..
            } => {
                let key = format!("{message_id}/{part_id}");
                // In this form a call has two messages.
                let result = (form == Form::Apart).then(|| format!("{key}-result"));
                core::iter::once(key)
                    .chain(result)
                    .map(Change::Remove)
                    .collect()
            }
            _ => vec![],
        }
    }

    /// Returns the message for a failed message: its error.
    #[must_use]
    pub fn info(info: &MessageInfo) -> Option<Placed> {
        let MessageInfo::Assistant(assistant) = info else {
            return None;
        };
        let error = assistant.error.as_ref()?;
        let id = format!("{}-error", assistant.id);
        let at = assistant.time.completed.unwrap_or(assistant.time.created);
        let metadata = object(json!({ "name": error.name, "error": error.data }));
        Some(Placed {
            // After all parts, whose ids begin with a letter.
            key: format!("{}/~error", assistant.id),
            state: EntryState::Done,
            message: message(
                &id,
                "assistant",
                "error",
                error.message().into(),
                at,
                metadata,
            ),
        })
    }

    fn call(&self, author: &Author, part: &Part, call: &ToolPart, form: Form) -> Vec<Placed> {
        let key = format!("{}/{}", part.message_id, part.id);
        let start = start_of(author, part, call);
        let result = result_of(author, part, call);
        let state = if call.state.is_final() {
            EntryState::Done
        } else {
            EntryState::Running
        };
        let placed = |key: String, state, message| Placed {
            key,
            state,
            message,
        };
        match (unmatched(call), result) {
            // Passed through unchanged (E4).
            (Some(UNMATCHED_RESULT), Some(result)) => vec![placed(key, state, result)],
            (Some(UNMATCHED_START), _) | (_, None) => vec![placed(key, state, start)],
            (_, Some(result)) if form == Form::Merged => {
                vec![placed(key, state, pair(&self.processors, start, result))]
            }
            (_, Some(result)) => {
                let after = format!("{key}-result");
                vec![placed(key, state, start), placed(after, state, result)]
            }
        }
    }
}

fn unmatched(call: &ToolPart) -> Option<&str> {
    call.extra.get(UNMATCHED).and_then(Value::as_str)
}

fn start_of(author: &Author, part: &Part, call: &ToolPart) -> ConversationMessage {
    let fields = json!({
        "tool_name": call.tool, "tool_use_id": call.call_id, "input": call.state.input(),
    });
    let at = begun(&call.state).map_or(author.created, |time| time.start);
    let mut fields = fields_of(call, fields);
    if let ToolState::Running {
        title, metadata, ..
    } = &call.state
    {
        let shown = title.as_ref().map(|title| ("title", json!(title)));
        let progress = metadata.as_ref().map(|it| ("progress", it.clone()));
        let said = shown.into_iter().chain(progress);
        fields.extend(said.map(|(key, value)| (key.to_string(), value)));
    }
    let name = call.tool.clone();
    message(part.id.as_str(), "assistant", "tool_use", name, at, fields)
}

fn begun(state: &ToolState) -> Option<&PartTime> {
    match state {
        ToolState::Pending { .. } => None,
        ToolState::Running { time, .. }
        | ToolState::Completed { time, .. }
        | ToolState::Error { time, .. } => Some(time),
    }
}

/// Returns the result, if there is one.
fn result_of(author: &Author, part: &Part, call: &ToolPart) -> Option<ConversationMessage> {
    let (time, output, metadata, is_error) = match &call.state {
        ToolState::Pending { .. } | ToolState::Running { .. } => return None,
        ToolState::Completed {
            output,
            metadata,
            time,
            ..
        } => (time, output, Some(metadata), false),
        ToolState::Error {
            error,
            metadata,
            time,
            ..
        } => (time, error, metadata.as_ref(), true),
    };
    let fields = json!({
        "tool_name": call.tool, "tool_use_id": call.call_id, "output": output, "is_error": is_error,
        "metadata": metadata.cloned().unwrap_or(Value::Null),
    });
    let id = format!("{}-result", part.id);
    let at = time.end.unwrap_or(time.start.max(author.created));
    let fields = fields_of(call, fields);
    Some(message(
        &id,
        "assistant",
        "tool_result",
        output.clone(),
        at,
        fields,
    ))
}

/// Returns the message of a part that is not a tool call.
fn text_of(author: &Author, part: &Part) -> Option<(EntryState, ConversationMessage)> {
    let said = |kind: &str, content: String, at, fields| {
        message(part.id.as_str(), author.role, kind, content, at, fields)
    };
    match &part.kind {
        PartKind::Text(text) => {
            let is_complete =
                author.role == "user" || text.time.as_ref().is_none_or(|time| time.end.is_some());
            let at = text.time.as_ref().map_or(author.created, |time| time.start);
            let flags = [("synthetic", text.synthetic), ("ignored", text.ignored)]
                .into_iter()
                .filter(|(_, flag)| *flag == Some(true));
            let fields = flags.map(|(key, _)| (key.to_string(), json!(true)));
            let message = said("text", text.text.clone(), at, fields.collect());
            Some((state(is_complete), message))
        }
        PartKind::Reasoning(thought) => {
            let at = thought.time.start;
            let message = said("reasoning", thought.text.clone(), at, Object::new());
            Some((state(thought.time.end.is_some()), message))
        }
        other => {
            let (kind, content, fields) = fact(other)?;
            let message = said(kind, content, author.created, fields);
            Some((EntryState::Done, message))
        }
    }
}

/// Returns kind, content and fields of a part that is complete from the start.
fn fact(part: &PartKind) -> Option<(&'static str, String, Object)> {
    let named = |fields: &Object, key: &str| {
        fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };
    Some(match part {
        PartKind::File(file) => ("file", named(file, "filename"), file.clone()),
        PartKind::Agent(agent) => ("agent", named(agent, "name"), agent.clone()),
        PartKind::Subtask(task) => ("subtask", named(task, "description"), task.clone()),
        PartKind::Retry(retry) => {
            let why = retry
                .get("error")
                .and_then(|it| it.pointer("/data/message"))
                .and_then(Value::as_str)
                .unwrap_or("the request is made again");
            ("retry", why.to_string(), retry.clone())
        }
        PartKind::Compaction(asked) => {
            let text = "the conversation is summarised".to_string();
            ("compaction", text, asked.clone())
        }
        PartKind::Patch(patch) => {
            let files: Vec<String> = patch
                .get("files")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(ToString::to_string)
                .collect();
            let noun = if files.len() == 1 { "file" } else { "files" };
            let text = format!("{} {noun} changed", files.len());
            let fields = json!({ "details": to_value(&Details::FileList { files }) });
            ("patch", text, object(fields))
        }
        PartKind::StepFinish(step) => {
            let fields = json!({ "reason": step.reason, "cost": step.cost, "tokens": to_value(&step.tokens) });
            ("step", String::new(), object(fields))
        }
        PartKind::StepStart(_) | PartKind::Snapshot(_) | PartKind::Text(_) => return None,
        PartKind::Reasoning(_) | PartKind::Tool(_) => return None,
    })
}

fn state(is_complete: bool) -> EntryState {
    if is_complete {
        EntryState::Done
    } else {
        EntryState::Running
    }
}

pub(super) fn message(
    id: &str,
    role: &str,
    kind: &str,
    content: String,
    timestamp: Millis,
    metadata: Object,
) -> ConversationMessage {
    ConversationMessage {
        id: id.to_string(),
        role: role.to_string(),
        message_type: kind.to_string(),
        content,
        timestamp,
        metadata,
    }
}

/// Returns the fields of a message about a call. A plugin's tool must not be taken for the bundled one whose name it has.
fn fields_of(call: &ToolPart, fields: Value) -> Object {
    let mut fields = object(fields);
    if let Some(plugin) = call.provenance.replaced_tool_of() {
        fields.insert(PLUGIN.into(), json!(plugin));
    }
    fields
}

pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

/// Returns the details of a merged message, if it has valid ones.
#[must_use]
pub fn details(message: &ConversationMessage) -> Option<Details> {
    from_value(message.metadata.get("details")?.clone()).ok()
}
