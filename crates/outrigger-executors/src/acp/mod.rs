//! The Agent Client Protocol, version 1, as a client: JSON-RPC over lines.

mod call;

use std::collections::BTreeMap;

use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use self::call::{ours, result_of};
use crate::calls::{Call, Calls, Ended, MAX_OPEN, as_it_came, said, text, thought};
use crate::step::{End, Protocol, Question, Step, Task, Verdict};
use crate::used::Used;
use crate::wire::rpc;

const VERSION: u64 = 1;

const INITIALIZE: u64 = 1;
const SESSION: u64 = 2;
const PROMPT: u64 = 3;

/// Updates without content for a conversation.
const SILENT: &[&str] = &[
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "session_info_update",
    "user_message_chunk",
];

/// The text in progress, until something else arrives.
#[derive(Default)]
enum Writing {
    #[default]
    Nothing,
    Text(String),
    Thought(String),
}

/// A question of the agent.
struct PendingPermission {
    request: Value,
    options: Value,
    call: String,
}

pub(crate) struct Acp {
    task: Task,
    calls: Calls,
    /// The combined updates of open calls.
    known: BTreeMap<String, Value>,
    writing: Writing,
    session: String,
    /// A resumed session repeats its history, which is not shown twice.
    is_loading: bool,
    waiting: BTreeMap<u64, PendingPermission>,
    /// Reasons for refused calls that have not ended yet.
    refused: BTreeMap<String, String>,
    next: u64,
    plans: u64,
    is_cancelled: bool,
    takes_images: bool,
    used: Used,
}

impl Acp {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            calls: Calls::new("acp"),
            known: BTreeMap::new(),
            writing: Writing::default(),
            session: String::new(),
            is_loading: false,
            waiting: BTreeMap::new(),
            refused: BTreeMap::new(),
            next: 0,
            plans: 0,
            is_cancelled: false,
            takes_images: false,
            used: Used::default(),
        }
    }

    fn response(&mut self, id: u64, value: &Value, at: Millis) -> Vec<Step> {
        if let Some(error) = text(value, "/error/message") {
            let detail = text(value, "/error/data/details").or(text(value, "/error/data"));
            let words = detail.map_or_else(|| error.to_owned(), |it| format!("{error}: {it}"));
            if id == SESSION && self.task.resume.take().is_some() {
                let words = format!(
                    "It starts a new session, as the previous one no longer exists: {words}"
                );
                self.is_loading = false;
                return vec![as_it_came(&words, at), self.begin_session()];
            }
            return vec![Step::End(End::Failed(words))];
        }
        match id {
            INITIALIZE => self.open(value),
            SESSION => {
                self.is_loading = false;
                let id = text(value, "/result/sessionId").or(self.task.resume.as_deref());
                self.session = id.unwrap_or_default().to_owned();
                let mut steps = vec![Step::Session(self.session.clone())];
                let mut prompt = vec![json!({ "type": "text", "text": self.task.prompt })];
                prompt.extend(
                    self.task
                        .images
                        .iter()
                        .map(|it| json!({ "type": "image", "mimeType": it.mime, "data": it.data })),
                );
                if !self.takes_images && prompt.len() > 1 {
                    let words = "It does not accept images: they were skipped.";
                    steps.push(as_it_came(words, at));
                    prompt.truncate(1);
                }
                let prompt = json!({ "sessionId": self.session, "prompt": prompt });
                steps.push(rpc::request(PROMPT, "session/prompt", &prompt));
                steps
            }
            PROMPT => {
                let mut steps = self.finish(at);
                self.used.tokens_of_acp(value);
                steps.push(Step::Used(self.used.clone()));
                steps.push(Step::End(self.ended(value)));
                steps
            }
            _ => Vec::new(),
        }
    }

    fn begin_session(&self) -> Step {
        let params = json!({ "cwd": self.task.folder, "mcpServers": [] });
        rpc::request(SESSION, "session/new", &params)
    }

    /// Starts a new session, or resumes the earlier one if possible.
    fn open(&mut self, value: &Value) -> Vec<Step> {
        let version = value
            .pointer("/result/protocolVersion")
            .and_then(Value::as_u64);
        if version != Some(VERSION) {
            let theirs = version.map_or_else(|| "none".to_owned(), |it| it.to_string());
            let words = format!(
                "it speaks version {theirs} of the Agent Client Protocol, and Outrigger version {VERSION}"
            );
            return vec![Step::End(End::Failed(words))];
        }
        let can = |pointer: &str| value.pointer(pointer).is_some_and(|it| *it != json!(false));
        self.takes_images = can("/result/agentCapabilities/promptCapabilities/image");
        let mut params = json!({ "cwd": self.task.folder, "mcpServers": [] });
        let method = match &self.task.resume {
            Some(_) if can("/result/agentCapabilities/sessionCapabilities/resume") => {
                "session/resume"
            }
            Some(_) if can("/result/agentCapabilities/loadSession") => "session/load",
            _ => "session/new",
        };
        match (&self.task.resume, &mut params) {
            (Some(id), Value::Object(fields)) if method != "session/new" => {
                fields.insert("sessionId".to_owned(), json!(id));
                self.is_loading = true;
            }
            _ => self.task.resume = None,
        }
        vec![rpc::request(SESSION, method, &params)]
    }

    fn ended(&self, value: &Value) -> End {
        match text(value, "/result/stopReason") {
            _ if self.is_cancelled => End::Cancelled,
            Some("end_turn") => End::Done,
            Some("cancelled") => End::Cancelled,
            Some("refusal") => End::Failed("it refused to continue".to_owned()),
            other => End::Failed(format!("it stopped: {}", other.unwrap_or("no reason"))),
        }
    }

    fn update(&mut self, line: &str, update: &Value, at: Millis) -> Vec<Step> {
        let kind = text(update, "/sessionUpdate").unwrap_or_default();
        let more = text(update, "/content/text").unwrap_or_default();
        match (kind, &mut self.writing) {
            (kind, _) if SILENT.contains(&kind) => return Vec::new(),
            ("agent_message_chunk", Writing::Text(text)) => {
                text.push_str(more);
                return Step::piece(false, more).into_iter().collect();
            }
            ("agent_thought_chunk", Writing::Thought(text)) => {
                text.push_str(more);
                return Step::piece(true, more).into_iter().collect();
            }
            ("usage_update", _) => {
                self.used.cost_of_acp(update, self.task.resume.is_some());
                return Vec::new();
            }
            _ => {}
        }
        let mut steps = self.written(at);
        match kind {
            "agent_message_chunk" => {
                self.writing = Writing::Text(more.to_owned());
                steps.extend(Step::piece(false, more));
            }
            "agent_thought_chunk" => {
                self.writing = Writing::Thought(more.to_owned());
                steps.extend(Step::piece(true, more));
            }
            "tool_call" | "tool_call_update" => steps.extend(self.call(update, at)),
            "plan" => steps.extend(self.plan(update, at)),
            _ => steps.push(as_it_came(line, at)),
        }
        steps
    }

    fn written(&mut self, at: Millis) -> Vec<Step> {
        let step = match std::mem::take(&mut self.writing) {
            Writing::Nothing => None,
            Writing::Text(text) => said(&text, at),
            Writing::Thought(text) => thought(&text, at),
        };
        step.into_iter().collect()
    }

    /// A call starts when its arguments are known: when it runs, is asked about, or has ended.
    fn call(&mut self, update: &Value, at: Millis) -> Vec<Step> {
        let Some(id) = text(update, "/toolCallId").map(str::to_owned) else {
            return vec![as_it_came(&update.to_string(), at)];
        };
        let known = self.learn(&id, update);
        let status = text(&known, "/status").unwrap_or("pending").to_owned();
        let mut steps = Vec::new();
        if status != "pending" {
            steps.extend(self.begun(&id, &known, at));
        }
        if status == "completed" || status == "failed" {
            self.known.remove(&id);
            self.refused.remove(&id);
            let ended = result_of(&known, status == "failed");
            steps.push(self.calls.ends(&id, ended, at));
        }
        steps
    }

    fn begun(&mut self, id: &str, known: &Value, at: Millis) -> Option<Step> {
        let kind = text(known, "/kind").unwrap_or("other").to_owned();
        let is_open = self.calls.is_open(id);
        (!is_open).then(|| {
            self.calls
                .starts(id, ours(known, &self.task.folder), &kind, at)
        })
    }

    /// Adds an update to the data of a call.
    fn learn(&mut self, id: &str, update: &Value) -> Value {
        if self.known.len() >= MAX_OPEN && !self.known.contains_key(id) {
            return update.clone();
        }
        let known = self.known.entry(id.to_owned()).or_insert_with(|| json!({}));
        let has_ended = matches!(text(update, "/status"), Some("completed" | "failed"));
        if let (Value::Object(known), Value::Object(update)) = (&mut *known, update) {
            for (key, value) in update {
                let is_empty = value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                // Output before a result is not a result.
                let is_kept = known.contains_key(key) && !(has_ended && key == "content");
                let says_less = value.is_null() || (is_empty && is_kept);
                if !says_less {
                    known.insert(key.clone(), value.clone());
                }
            }
        }
        known.clone()
    }

    fn plan(&mut self, update: &Value, at: Millis) -> Vec<Step> {
        self.plans += 1;
        let id = format!("plan-{}", self.plans);
        let todos = update.get("entries").cloned().unwrap_or_default();
        let call = Call::new("todowrite", json!({ "todos": todos }));
        let starts = self.calls.starts(&id, call, "plan", at);
        self.calls.asked(&id);
        let ended = Ended {
            facts: Object::from_iter([("todos".to_owned(), todos)]),
            ..Ended::default()
        };
        vec![starts, self.calls.ends(&id, ended, at)]
    }

    fn asked(&mut self, method: &str, id: &Value, params: &Value, at: Millis) -> Vec<Step> {
        let call = params
            .get("toolCall")
            .filter(|_| method == "session/request_permission");
        let named = call.and_then(|call| Some((call, text(call, "/toolCallId")?.to_owned())));
        // One answer to two questions would allow what was not shown.
        if self.waiting.values().any(|it| it.request == *id) {
            return vec![as_it_came(&format!("asked again: {params}"), at)];
        }
        let Some((call, name)) = named else {
            return vec![rpc::no_method(id, method)];
        };
        let mut steps = self.written(at);
        let has_more = self.known.contains_key(&name);
        let known = match self.calls.get(&name) {
            // A question may describe the call in other words than the call itself.
            Some(_) if has_more => self.known.get(&name).cloned().unwrap_or_default(),
            _ => self.learn(&name, call),
        };
        steps.extend(self.begun(&name, &known, at));
        self.calls.asked(&name);
        let Call { tool, input } = match self.calls.get(&name) {
            Some(call) => call.clone(),
            None => ours(&known, &self.task.folder),
        };
        self.next += 1;
        let waiting = PendingPermission {
            request: id.clone(),
            options: params.get("options").cloned().unwrap_or_default(),
            call: name.clone(),
        };
        self.waiting.insert(self.next, waiting);
        steps.push(Step::Ask(Question {
            id: self.next,
            call: name,
            tool,
            input,
        }));
        steps
    }
}

impl Protocol for Acp {
    fn begin(&mut self) -> Vec<Step> {
        let fs = json!({ "readTextFile": false, "writeTextFile": false });
        let client = json!({ "name": "outrigger", "title": "Outrigger", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({
            "protocolVersion": VERSION, "clientCapabilities": { "fs": fs, "terminal": false }, "clientInfo": client,
        });
        vec![rpc::request(INITIALIZE, "initialize", &params)]
    }

    fn line(&mut self, line: &str, at: Millis) -> Vec<Step> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return vec![as_it_came(line, at)];
        };
        let params = value.get("params").unwrap_or(&Value::Null);
        match (text(&value, "/method"), value.get("id")) {
            (Some(method), Some(id)) => self.asked(method, id, params, at),
            (Some("session/update"), None) if self.is_loading => Vec::new(),
            // Belongs to another session of the agent that was not started here.
            (Some("session/update"), None) if text(params, "/sessionId") != Some(&self.session) => {
                vec![as_it_came(line, at)]
            }
            (Some("session/update"), None) => {
                let update = params.get("update").unwrap_or(&Value::Null);
                self.update(line, update, at)
            }
            (None, Some(id)) => self.response(id.as_u64().unwrap_or_default(), &value, at),
            _ => vec![as_it_came(line, at)],
        }
    }

    fn answer(&mut self, question: u64, verdict: &Verdict) -> Vec<Step> {
        let Some(waiting) = self.waiting.remove(&question) else {
            return Vec::new();
        };
        // Never more than once: permanent approvals are stored by us.
        let wanted = match verdict {
            Verdict::Allow => ["allow_once"],
            Verdict::Deny(why) => {
                if self.refused.len() < MAX_OPEN {
                    self.refused.insert(waiting.call, why.clone());
                }
                ["reject_once"]
            }
        };
        let mut options = waiting.options.as_array().into_iter().flatten();
        let option = options.find(|it| text(it, "/kind").is_some_and(|it| wanted.contains(&it)));
        let outcome = match option.and_then(|it| it.get("optionId")) {
            Some(id) if !self.is_cancelled => json!({ "outcome": "selected", "optionId": id }),
            _ => json!({ "outcome": "cancelled" }),
        };
        vec![rpc::answer(
            &waiting.request,
            &json!({ "outcome": outcome }),
        )]
    }

    fn cancel(&mut self) -> Vec<Step> {
        self.is_cancelled = true;
        let params = json!({ "sessionId": self.session });
        let mut steps = vec![rpc::notice("session/cancel", &params)];
        let open: Vec<u64> = self.waiting.keys().copied().collect();
        let verdict = Verdict::Deny("cancelled".to_owned());
        steps.extend(open.into_iter().flat_map(|id| self.answer(id, &verdict)));
        steps
    }

    fn finish(&mut self, at: Millis) -> Vec<Step> {
        let mut steps = self.written(at);
        // Some agents send nothing more about a refused call.
        for (id, text) in std::mem::take(&mut self.refused) {
            if self.calls.is_open(&id) {
                let ended = Ended {
                    text,
                    is_error: true,
                    ..Ended::default()
                };
                steps.push(self.calls.ends(&id, ended, at));
            }
        }
        steps
    }
}
