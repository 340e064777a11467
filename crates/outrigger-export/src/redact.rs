//! Removes what is not for others: tool output, file contents, and secrets.

use outrigger_prompt::printed;
use outrigger_protocol::message::{
    MessageInfo, MessageWithParts, NamedError, Part, PartKind, ToolPart, ToolState,
};
use outrigger_protocol::origin::ORIGIN;
use outrigger_protocol::{Object, session::Session};
use outrigger_store::Redactor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::select::Stored;

/// Replacement of removed text.
pub const LEFT_OUT: &str = "[left out]";

/// Arguments that describe a call's subject. All others may contain file contents, and are removed.
const SHOWN: &[&str] = &[
    "description",
    "filePath",
    "include",
    "limit",
    "name",
    "offset",
    "path",
    "pattern",
    "query",
    "replaceAll",
    "subagent_type",
    "timeout",
    "url",
    "workdir",
];

/// Removes texts from sessions, including the secrets that are kept out of the audit.
pub struct Redaction {
    redactor: Redactor,
}

impl Redaction {
    /// Creates a redaction with the secrets of `redactor`.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    /// Redacts a session and those of its subagents.
    ///
    /// # Errors
    /// A value that is not JSON.
    pub fn apply(&self, sessions: &mut [Stored]) -> Result<(), serde_json::Error> {
        let messages = sessions.iter().flat_map(|stored| &stored.messages);
        let parts = messages.flat_map(|message| &message.parts);
        let tasks: Vec<Task> = parts.filter_map(|part| Task::of(&part.kind)).collect();
        for stored in sessions {
            session(&mut stored.session);
            stored.session = self.cleaned(&stored.session)?;
            for message in &mut stored.messages {
                of_message(message, &tasks);
                *message = self.cleaned(message)?;
            }
        }
        Ok(())
    }

    fn cleaned<T: Serialize + DeserializeOwned>(&self, of: &T) -> Result<T, serde_json::Error> {
        let mut value = serde_json::to_value(of)?;
        self.clean(&mut value);
        serde_json::from_value(value)
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redactor.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean(field)),
            _ => {}
        }
    }
}

/// The task of a subagent whose prompt contains what shell lines printed.
struct Task {
    /// Also the first prompt in the session of the subagent.
    prompt: String,
    redacted: String,
}

impl Task {
    fn of(part: &PartKind) -> Option<Self> {
        let PartKind::Subtask(task) = part else {
            return None;
        };
        let prompt = task.get("prompt")?.as_str()?;
        Some(Self {
            prompt: prompt.to_owned(),
            redacted: printed::replaced(task, prompt, LEFT_OUT)?,
        })
    }
}

fn session(session: &mut Session) {
    session.permission = None;
    session.extra = Object::new();
    if let Some(revert) = &mut session.revert {
        revert.diff = None;
    }
    if let Some(metadata) = &mut session.metadata {
        metadata.retain(|key, _| key == ORIGIN);
    }
}

fn of_message(message: &mut MessageWithParts, tasks: &[Task]) {
    match &mut message.info {
        MessageInfo::User(user) => {
            (user.system, user.tools, user.format, user.summary) = (None, None, None, None);
            user.extra = Object::new();
        }
        MessageInfo::Assistant(answer) => {
            answer.structured = None;
            answer.extra = Object::new();
            if let Some(error) = &mut answer.error {
                *error = NamedError::new(error.name.clone(), error.message().to_owned());
            }
        }
    }
    for part in &mut message.parts {
        of_part(part, tasks);
    }
}

fn of_part(part: &mut Part, tasks: &[Task]) {
    match &mut part.kind {
        PartKind::Text(text) => {
            // The content of a file that was inserted into a prompt.
            if text.synthetic == Some(true) {
                text.text = LEFT_OUT.to_owned();
            }
            let task = tasks.iter().find(|task| task.prompt == text.text);
            let redacted = task
                .map(|task| task.redacted.clone())
                .or_else(|| printed::replaced(&text.extra, &text.text, LEFT_OUT));
            if let Some(redacted) = redacted {
                text.text = redacted;
            }
            text.extra = Object::new();
        }
        PartKind::Reasoning(thought) => {
            thought.metadata = None;
            thought.extra = Object::new();
        }
        PartKind::Tool(call) => of_call(call),
        PartKind::File(file) => file.retain(|key, _| key == "mime" || key == "filename"),
        PartKind::Snapshot(fields) => fields.clear(),
        PartKind::Subtask(fields) => {
            if let Some(task) = Task::of(&PartKind::Subtask(fields.clone())) {
                fields.insert("prompt".to_owned(), json!(task.redacted));
            }
        }
        _ => {}
    }
}

fn of_call(call: &mut ToolPart) {
    call.metadata = None;
    call.extra = Object::new();
    let time = |state: &ToolState| match state {
        ToolState::Pending { .. } => None,
        ToolState::Running { time, .. }
        | ToolState::Completed { time, .. }
        | ToolState::Error { time, .. } => Some(time.clone()),
    };
    let at = time(&call.state).unwrap_or_default();
    let input = arguments(call.state.input());
    call.state = match &call.state {
        ToolState::Pending { .. } => ToolState::Pending {
            input,
            raw: String::new(),
        },
        ToolState::Running { title, .. } => ToolState::Running {
            input,
            title: title.as_deref().map(first_line),
            metadata: None,
            time: at,
        },
        ToolState::Completed { title, .. } => ToolState::Completed {
            input,
            output: LEFT_OUT.to_owned(),
            title: first_line(title),
            metadata: json!({}),
            time: at,
            attachments: None,
        },
        ToolState::Error { .. } => ToolState::Error {
            input,
            error: LEFT_OUT.to_owned(),
            metadata: None,
            time: at,
        },
    };
}

fn arguments(input: &Value) -> Value {
    let Value::Object(fields) = input else {
        return json!({});
    };
    let fields = fields.iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            (_, Value::Number(_) | Value::Bool(_) | Value::Null) => value.clone(),
            ("command", Value::String(text)) => json!(first_line(text)),
            ("patchText", Value::String(text)) => json!(files_of(text)),
            (key, Value::String(_)) if SHOWN.contains(&key) => value.clone(),
            _ => json!(LEFT_OUT),
        };
        (key.clone(), value)
    });
    Value::Object(fields.collect())
}

/// Truncates a command, or a title that repeats it: its further lines may contain a file.
fn first_line(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, _)) => format!("{first} {LEFT_OUT}"),
        None => text.to_owned(),
    }
}

/// Returns the lines of a patch that name files.
fn files_of(patch: &str) -> String {
    patch
        .lines()
        .filter(|line| line.starts_with("*** "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its title is the command.
    #[test]
    fn what_a_command_writes_is_left_out_of_its_title_too() {
        let command = "cat > f <<'E'\nSECRET\nE";
        let input = json!({ "command": command });
        for state in [
            json!({ "status": "running", "input": input, "title": command, "time": { "start": 1 } }),
            json!({ "status": "completed", "input": input, "title": command, "output": "SECRET", "metadata": {},
                "time": { "start": 1, "end": 2 } }),
        ] {
            let call = json!({ "callID": "call_1", "tool": "bash", "state": state });
            let mut call: ToolPart = serde_json::from_value(call).unwrap();
            of_call(&mut call);
            let text = serde_json::to_string(&call).unwrap();
            assert!(!text.contains("SECRET"), "{text}");
            assert!(
                text.contains(r#""title":"cat > f <<'E' [left out]""#),
                "{text}"
            );
        }
    }
}
