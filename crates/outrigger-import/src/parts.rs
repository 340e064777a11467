//! Converts parts of messages.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::merged::{CHANGED_BY, EXECUTOR};
use outrigger_protocol::message::{
    CacheTokens, PartKind, PartTime, ReasoningPart, StepFinishPart, TextPart, Tokens, ToolPart,
    ToolState,
};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use crate::accept::{cost, shortened};

/// Kept fields of a tool's metadata: those that are displayed.
const REPORTED: &[&str] = &[
    "answers",
    "details",
    "display",
    "exists",
    "exit",
    "filediff",
    "files",
    "output",
    "stderr",
    "stdout",
    "summary",
    "todos",
    "truncated",
    CHANGED_BY,
    EXECUTOR,
];
/// Media types whose contents are kept: models may not accept others.
const CONTENTS: &[&str] = &[
    "application/pdf",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/plain",
];
/// Maximum number of tokens; larger values are ignored.
const MAX_TOKENS: u64 = 1_000_000_000;
/// The error of a call that had not ended.
pub(crate) const NOT_ENDED: &str = "it had not ended when the session was imported";
/// The key of a call of which one half is missing.
pub(crate) const UNMATCHED: &str = "unmatched";

/// The state of a session while its parts are read.
pub(crate) struct Context<'a> {
    /// Imported sessions of the same program.
    pub(crate) known: &'a BTreeMap<String, SessionId>,
    /// Calls so far.
    pub(crate) calls: BTreeSet<String>,
    /// The latest possible time.
    pub(crate) latest: Millis,
}

impl Context<'_> {
    pub(crate) fn time(&self, at: Millis) -> Millis {
        at.min(self.latest)
    }

    fn times(&self, time: &PartTime) -> PartTime {
        let start = self.time(time.start);
        PartTime {
            start,
            end: Some(self.time(time.end.unwrap_or(start)).max(start)),
            compacted: time.compacted.map(|at| self.time(at)),
        }
    }

    /// Returns an identifier that providers accept, unique in the session.
    fn call(&mut self, said: &CallId) -> CallId {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let said = said.as_str();
        let is_fit = !said.is_empty() && said.len() <= 64 && said.chars().all(is_plain);
        let mut id = if is_fit {
            said.to_owned()
        } else {
            format!("call_{}", self.calls.len())
        };
        while !self.calls.insert(id.clone()) {
            id = format!("call_{}_{}", self.calls.len(), shortened(&id, 32));
        }
        CallId(id)
    }
}

/// Converts a part; `None` if it contains nothing for the user or a model.
pub(crate) fn part(
    kind: PartKind,
    context: &mut Context<'_>,
    renamed: &BTreeMap<MessageId, MessageId>,
) -> Option<PartKind> {
    Some(match kind {
        PartKind::Text(said) => PartKind::Text(TextPart {
            time: said.time.as_ref().map(|time| context.times(time)),
            // What a model reads must be visible: a text may be hidden from the model, but not only
            // from the user.
            ignored: said.ignored.filter(|is_ignored| *is_ignored),
            text: said.text,
            ..TextPart::default()
        }),
        PartKind::Reasoning(thought) => PartKind::Reasoning(ReasoningPart {
            time: context.times(&thought.time),
            text: thought.text,
            ..ReasoningPart::default()
        }),
        PartKind::Tool(call) => PartKind::Tool(of_call(call, context)),
        PartKind::File(fields) => PartKind::File(file(&fields)),
        // Each of these would start something when it is re-read.
        PartKind::Agent(fields) => text(format!("@{}", word(&fields, "name"))),
        PartKind::Subtask(fields) => {
            let words = ["description", "prompt"].map(|key| word(&fields, key));
            text(words.join("\n\n"))
        }
        PartKind::StepFinish(step) => PartKind::StepFinish(StepFinishPart {
            reason: shortened(&step.reason, 40),
            snapshot: None,
            tokens: tokens(&step.tokens),
            cost: cost(step.cost),
        }),
        PartKind::StepStart(_) => PartKind::StepStart(Object::new()),
        // Names for display. Its snapshot could be used to restore files.
        PartKind::Patch(fields) => {
            let files = fields.get("files").and_then(Value::as_array);
            let files = files.into_iter().flatten().filter_map(Value::as_str);
            let files: Vec<&str> = files.collect();
            PartKind::Patch(object(json!({ "hash": "", "files": files })))
        }
        PartKind::Retry(fields) => {
            let message = Value::Object(fields);
            let message = message
                .pointer("/error/data/message")
                .and_then(Value::as_str)?;
            let error = json!({ "name": "APIError", "data": { "message": message } });
            PartKind::Retry(object(json!({ "attempt": 1, "error": error })))
        }
        PartKind::Compaction(fields) => {
            let tail = fields.get("tail_start_id").and_then(Value::as_str);
            let tail = tail.and_then(|id| renamed.get(&MessageId::from(id)));
            let mut fields = object(json!({ "auto": fields.get("auto") == Some(&json!(true)) }));
            fields.extend(tail.map(|id| ("tail_start_id".to_owned(), json!(id))));
            PartKind::Compaction(fields)
        }
        PartKind::Snapshot(_) => return None,
    })
}

fn of_call(call: ToolPart, context: &mut Context<'_>) -> ToolPart {
    let half = call.extra.get(UNMATCHED).and_then(Value::as_str);
    let half = half.filter(|half| ["start", "result"].contains(half));
    let extra = half.map(|half| (UNMATCHED.to_owned(), json!(half)));
    // It is displayed as another's tool, but is not a cause.
    let replaced = call.provenance.replaced_tool_of();
    let tool = tool_name(&call.tool);
    let provenance = replaced.map(|plugin| Provenance::default().by_replaced_tool(&plugin, &tool));
    ToolPart {
        call_id: context.call(&call.call_id),
        tool,
        state: state(call.state, context),
        metadata: None,
        provenance: provenance.unwrap_or_default(),
        extra: extra.into_iter().collect(),
    }
}

fn state(state: ToolState, context: &Context<'_>) -> ToolState {
    match state {
        ToolState::Completed {
            input,
            output,
            title,
            metadata,
            time,
            ..
        } => ToolState::Completed {
            input: arguments(input),
            output,
            title: shortened(&title, 400),
            metadata: Value::Object(reported(metadata, context)),
            time: context.times(&time),
            attachments: None,
        },
        ToolState::Error {
            input,
            error,
            metadata,
            time,
        } => ToolState::Error {
            input: arguments(input),
            error,
            metadata: metadata.map(|it| Value::Object(reported(it, context))),
            time: context.times(&time),
        },
        ToolState::Pending { input, .. } => interrupted(input, &PartTime::default(), context),
        ToolState::Running { input, time, .. } => interrupted(input, &time, context),
    }
}

/// Ends a call that had not ended.
fn interrupted(input: Value, time: &PartTime, context: &Context<'_>) -> ToolState {
    ToolState::Error {
        input: arguments(input),
        error: NOT_ENDED.to_owned(),
        metadata: None,
        time: context.times(time),
    }
}

/// Converts arguments to an object, as providers require.
fn arguments(input: Value) -> Value {
    match input {
        Value::Object(_) => input,
        Value::Null => json!({}),
        other => json!({ "input": other }),
    }
}

fn reported(metadata: Value, context: &Context<'_>) -> Object {
    let Value::Object(fields) = metadata else {
        return Object::new();
    };
    // The conversation of a subagent, if it is imported too.
    let child = fields.get("sessionId").and_then(Value::as_str);
    let child = child.and_then(|id| context.known.get(id));
    let child = child.map(|id| ("sessionId".to_owned(), json!(id)));
    let kept = fields.into_iter();
    let kept = kept.filter(|(key, _)| REPORTED.contains(&key.as_str()));
    kept.chain(child).collect()
}

/// Returns a name that providers accept.
fn tool_name(said: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    if said.is_empty() {
        "unknown".to_owned()
    } else {
        said.chars().take(64).map(plain).collect()
    }
}

/// Converts a file with its contents. A URL would be opened, here or by a provider.
fn file(fields: &Object) -> Object {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let is_known = |mime: &&str| CONTENTS.contains(mime);
    let url = text("url")
        .filter(|url| url.starts_with("data:") && text("mime").is_some_and(|mime| is_known(&mime)));
    let kept = [
        ("mime", text("mime")),
        ("filename", text("filename")),
        ("url", url),
    ];
    let kept = kept.into_iter();
    kept.filter_map(|(key, value)| Some((key.to_owned(), json!(value?))))
        .collect()
}

fn word(fields: &Object, key: &str) -> String {
    let text = fields.get(key).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn text(text: String) -> PartKind {
    PartKind::Text(TextPart {
        text,
        ..TextPart::default()
    })
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}

pub(crate) fn tokens(said: &Tokens) -> Tokens {
    let count = |said: u64| said.min(MAX_TOKENS);
    Tokens {
        total: said.total.map(count),
        input: count(said.input),
        output: count(said.output),
        reasoning: count(said.reasoning),
        cache: CacheTokens {
            read: count(said.cache.read),
            write: count(said.cache.write),
        },
    }
}
