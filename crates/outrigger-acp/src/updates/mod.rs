//! Converts events and stored messages to session updates.

pub(crate) mod calls;
pub(crate) mod patches;
pub(crate) mod terminals;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId, SessionId};
use outrigger_protocol::message::{
    MessageInfo, MessageWithParts, Part, PartKind, StepFinishPart, ToolPart, ToolState,
};
use outrigger_protocol::session::{Session, Todo};
use serde_json::{Value, json};

use crate::content;
use crate::updates::terminals::Sent;

/// Interval between progress reports of a running call, in milliseconds.
const PROGRESS_INTERVAL: Millis = 250;

/// A text that is being written.
#[derive(Debug)]
struct Written {
    update: &'static str,
    /// Number of bytes sent.
    sent: usize,
}

/// A call that the editor knows.
#[derive(Debug, Default)]
struct Call {
    is_running: bool,
    is_final: bool,
    /// When it started; set again after the user has answered its question.
    began: Millis,
    reported: Millis,
    /// What its terminal shows.
    sent: Sent,
}

/// Creates updates of a session. Nothing is sent twice, so events may be repeated.
#[derive(Debug)]
pub(crate) struct Updates {
    session: SessionId,
    folder: PathBuf,
    /// Prompts are sent, too, because the editor does not have them.
    with_prompts: bool,
    /// Commands are shown in terminals of the editor.
    with_terminals: bool,
    /// Context size of each model in tokens.
    contexts: BTreeMap<String, u64>,
    prompts: HashSet<MessageId>,
    models: HashMap<MessageId, String>,
    texts: HashMap<PartId, Written>,
    calls: HashMap<PartId, Call>,
    /// Identifiers of the calls that the editor knows.
    known: HashSet<String>,
    cost: Option<f64>,
    title: Option<String>,
    todos: Vec<Todo>,
}

impl Updates {
    /// Creates updates of a session in a folder.
    pub(crate) fn new(session: SessionId, folder: PathBuf) -> Self {
        Self {
            session,
            folder,
            with_prompts: false,
            with_terminals: false,
            contexts: BTreeMap::new(),
            prompts: HashSet::new(),
            models: HashMap::new(),
            texts: HashMap::new(),
            calls: HashMap::new(),
            known: HashSet::new(),
            cost: None,
            title: None,
            todos: Vec::new(),
        }
    }

    /// Sets the context size of each model.
    pub(crate) fn with_contexts(mut self, contexts: BTreeMap<String, u64>) -> Self {
        self.contexts = contexts;
        self
    }

    /// Sets whether the editor shows commands in terminals.
    pub(crate) fn with_terminals(mut self, shown: bool) -> Self {
        self.with_terminals = shown;
        self
    }

    /// Records a call by its identifier. Returns `false` if the editor knows it already.
    pub(crate) fn is_first_of(&mut self, call: &str) -> bool {
        self.known.insert(call.to_owned())
    }

    /// Converts stored messages.
    pub(crate) fn replay(mut self, messages: &[MessageWithParts]) -> Vec<Value> {
        self.with_prompts = true;
        self.stored(messages)
    }

    /// Converts the parts of messages that were not sent yet.
    pub(crate) fn stored(&mut self, messages: &[MessageWithParts]) -> Vec<Value> {
        let mut updates = Vec::new();
        for message in messages {
            self.message(&message.info);
            for part in &message.parts {
                updates.extend(self.part(part, 0));
            }
        }
        updates
    }

    /// Converts an event.
    pub(crate) fn on(&mut self, event: &Event) -> Vec<Value> {
        if event.session_id() != Some(&self.session) {
            return Vec::new();
        }
        match event {
            Event::MessageUpdated { info, .. } => {
                self.message(info);
                Vec::new()
            }
            Event::PartUpdated { part, time, .. } => self.part(part, *time),
            Event::PartDelta {
                part_id,
                field,
                delta,
                ..
            } if field == "text" => self.delta(part_id, delta).into_iter().collect(),
            Event::TodoUpdated { todos, .. } => self.todos(todos).into_iter().collect(),
            Event::SessionUpdated { info, .. } => self.info(info).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn message(&mut self, info: &MessageInfo) {
        match info {
            MessageInfo::User(user) => {
                self.prompts.insert(user.id.clone());
            }
            MessageInfo::Assistant(answer) => {
                let model = format!("{}/{}", answer.provider_id, answer.model_id);
                self.models.insert(answer.id.clone(), model);
            }
        }
    }

    fn part(&mut self, part: &Part, at: Millis) -> Vec<Value> {
        if self.prompts.contains(&part.message_id) {
            return if self.with_prompts {
                self.prompt(part)
            } else {
                Vec::new()
            };
        }
        match &part.kind {
            PartKind::Text(text) if text.synthetic == Some(true) => Vec::new(),
            PartKind::Text(text) => self.text(part, "agent_message_chunk", &text.text),
            PartKind::Reasoning(thought) => self.text(part, "agent_thought_chunk", &thought.text),
            PartKind::Tool(call) => self.call(part, call, at),
            PartKind::StepFinish(step) => self.usage(part, step).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn prompt(&mut self, part: &Part) -> Vec<Value> {
        let block = match &part.kind {
            PartKind::Text(text) if text.synthetic == Some(true) => None,
            PartKind::Text(text) => {
                return self.text(part, "user_message_chunk", &text.text);
            }
            PartKind::File(file) => content::block(file),
            _ => None,
        };
        let update = |block: Value| json!({ "sessionUpdate": "user_message_chunk", "content": block, "messageId": part.message_id });
        block.map(update).into_iter().collect()
    }

    /// Returns the part of a text that was not sent yet.
    fn text(&mut self, part: &Part, update: &'static str, text: &str) -> Vec<Value> {
        let written = self
            .texts
            .entry(part.id.clone())
            .or_insert(Written { update, sent: 0 });
        let rest = text.get(written.sent..).unwrap_or_default();
        if rest.is_empty() {
            return Vec::new();
        }
        written.sent = text.len();
        vec![chunk(update, &part.id, rest)]
    }

    fn delta(&mut self, id: &PartId, delta: &str) -> Option<Value> {
        // If its start was missed, the text is sent whole when it is stored.
        let written = self.texts.get_mut(id)?;
        if delta.is_empty() || written.update == "user_message_chunk" {
            return None;
        }
        written.sent += delta.len();
        Some(chunk(written.update, id, delta))
    }

    fn call(&mut self, part: &Part, call: &ToolPart, at: Millis) -> Vec<Value> {
        let is_error = matches!(call.state, ToolState::Error { .. });
        // The plan shows its effect.
        if call.tool == "todowrite" && !is_error {
            let plan = todos_of(call).and_then(|todos| self.todos(&todos));
            return plan.into_iter().collect();
        }
        let is_new = !self.calls.contains_key(&part.id);
        self.known.insert(call.call_id.to_string());
        let known = self.calls.entry(part.id.clone()).or_default();
        let (is_running, began) = match &call.state {
            ToolState::Running { time, .. } => (true, time.start),
            _ => (false, known.began),
        };
        let is_final = call.state.is_final();
        if known.is_final || known.is_running && !is_running && !is_final {
            return Vec::new();
        }
        let is_progress = is_running && known.is_running;
        let is_anew = began != known.began;
        if is_progress && !is_anew && at < known.reported + PROGRESS_INTERVAL {
            return Vec::new();
        }
        (known.began, known.reported) = (began, at);
        (known.is_running, known.is_final) = (known.is_running || is_running, is_final);
        let update = shown(part, call, &self.folder, is_new, is_progress);
        if self.with_terminals && terminals::is_command(call) {
            let news = known.sent.news(call);
            if is_progress && !is_anew && news.is_none() {
                return Vec::new();
            }
            return in_terminal(call, update, news, &self.folder);
        }
        let says_nothing = is_progress && !is_anew && update.get("content").is_none();
        (!says_nothing).then_some(update).into_iter().collect()
    }

    fn usage(&mut self, part: &Part, step: &StepFinishPart) -> Option<Value> {
        let model = self.models.get(&part.message_id)?;
        let size = *self.contexts.get(model)?;
        let tokens = &step.tokens;
        let used = tokens.input
            + tokens.output
            + tokens.reasoning
            + tokens.cache.read
            + tokens.cache.write;
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if let Some(cost) = self.cost.map(|cost| cost + step.cost) {
            update["cost"] = json!({ "amount": cost, "currency": "USD" });
            self.cost = Some(cost);
        }
        (!self.with_prompts).then_some(update)
    }

    fn todos(&mut self, todos: &[Todo]) -> Option<Value> {
        if self.todos == todos {
            return None;
        }
        self.todos = todos.to_vec();
        Some(plan(todos))
    }

    /// Reports a new title of the session.
    pub(crate) fn info(&mut self, session: &Session) -> Option<Value> {
        self.cost = Some(session.cost);
        if self.title.as_ref() == Some(&session.title) {
            return None;
        }
        let is_first = self.title.replace(session.title.clone()).is_none();
        // The editor knows the title from the start of the turn.
        (!is_first).then(|| title(session))
    }

    /// Records the current session, which the editor knows.
    pub(crate) fn knows(mut self, session: &Session) -> Self {
        (self.title, self.cost) = (Some(session.title.clone()), Some(session.cost));
        self
    }
}

/// Creates the update of a title.
pub(crate) fn title(session: &Session) -> Value {
    json!({
        "sessionUpdate": "session_info_update",
        "title": session.title, "updatedAt": time(session.time.updated),
    })
}

/// Formats a time.
pub(crate) fn time(at: Millis) -> String {
    let at = i64::try_from(at).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    format!("{at:.3}")
}

/// Creates the update of the todo list.
pub(crate) fn plan(todos: &[Todo]) -> Value {
    let entries = todos
        .iter()
        .filter(|it| it.status != "cancelled")
        .map(|todo| {
            let of = |value: &str, known: &[&'static str], other: &'static str| {
                known
                    .iter()
                    .find(|it| **it == value)
                    .copied()
                    .unwrap_or(other)
            };
            json!({
                "content": todo.content,
                "priority": of(&todo.priority, &["high", "medium", "low"], "medium"),
                "status": of(&todo.status, &["pending", "in_progress", "completed"], "pending"),
            })
        });
    json!({ "sessionUpdate": "plan", "entries": entries.collect::<Vec<_>>() })
}

/// Returns the list that a call of `todowrite` has written.
fn todos_of(call: &ToolPart) -> Option<Vec<Todo>> {
    let ToolState::Completed { input, .. } = &call.state else {
        return None;
    };
    serde_json::from_value(input["todos"].clone()).ok()
}

fn chunk(update: &str, id: &PartId, text: &str) -> Value {
    json!({
        "sessionUpdate": update, "messageId": id,
        "content": { "type": "text", "text": text },
    })
}

/// Returns the updates of a command in a terminal: its output is metadata. A terminal is created before anything is sent to it.
fn in_terminal(
    call: &ToolPart,
    mut update: Value,
    news: Option<Value>,
    folder: &std::path::Path,
) -> Vec<Value> {
    let mut content = vec![terminals::block(call)];
    if let (ToolState::Error { .. }, Some(said)) = (&call.state, update["content"].as_array()) {
        content.extend(said.iter().cloned());
    }
    update["content"] = json!(content);
    if update["sessionUpdate"] != "tool_call" {
        if let Some(news) = news {
            update["_meta"] = news;
        }
        return vec![update];
    }
    update["_meta"] = terminals::created(call, folder);
    let more = news.map(|news| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": call.call_id,
            "status": update["status"], "_meta": news,
        })
    });
    std::iter::once(update).chain(more).collect()
}

fn shown(
    part: &Part,
    call: &ToolPart,
    folder: &std::path::Path,
    is_new: bool,
    is_progress: bool,
) -> Value {
    let (status, said) = match &call.state {
        ToolState::Pending { .. } => ("pending", None),
        ToolState::Running { title, .. } => ("in_progress", title.as_deref()),
        ToolState::Completed { title, .. } => ("completed", Some(title.as_str())),
        ToolState::Error { .. } => ("failed", None),
    };
    let input = call.state.input();
    let update = if is_new {
        "tool_call"
    } else {
        "tool_call_update"
    };
    let mut shown =
        json!({ "sessionUpdate": update, "toolCallId": call.call_id, "status": status });
    let content = calls::content(part, call, folder);
    if !content.is_empty() {
        shown["content"] = json!(content);
    }
    // Progress changes nothing but the output.
    if is_progress {
        return shown;
    }
    shown["title"] = json!(calls::title(&call.tool, input, said, folder));
    shown["kind"] = json!(calls::kind(&call.tool));
    let locations = calls::locations(&call.tool, input, folder);
    if !locations.is_empty() {
        shown["locations"] = json!(locations);
    }
    if let Some(input) = calls::input_of(input).filter(|it| *it != json!({})) {
        shown["rawInput"] = input;
    }
    shown
}
