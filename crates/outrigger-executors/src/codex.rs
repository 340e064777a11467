//! Codex: `codex app-server`, JSON-RPC over lines (0.171.0). `codex exec --json` cannot be answered, so it is not used.

mod command;
mod patch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

pub(crate) use self::command::script;
use self::patch::{Change, changes, patch};
use crate::access::{Access, below};
use crate::calls::{Call, Calls, Ended, as_it_came, said, text, thought};
use crate::step::{End, Protocol, Question, Step, Task, Verdict};
use crate::used::Used;
use crate::wire::rpc;

const INITIALIZE: u64 = 1;
const THREAD: u64 = 2;
const TURN: u64 = 3;
const INTERRUPT: u64 = 4;

/// Notifications without content for a conversation: their content arrives complete in another, or is about Codex
/// itself.
const SILENT: &[&str] = &[
    "account/rateLimits/updated",
    "account/updated",
    "configWarning",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "mcpServer/startupStatus/updated",
    "remoteControl/status/changed",
    "serverRequest/resolved",
    "skills/changed",
    "thread/goal/cleared",
    "thread/name/updated",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
    "turn/started",
];

pub(crate) fn command() -> Vec<String> {
    vec!["app-server".to_owned()]
}

pub(crate) fn access(home: &Path) -> Access {
    let folder = home.join(".codex");
    let runs = [
        ".env",
        "config.toml",
        "AGENTS.md",
        "AGENTS.override.md",
        "agents",
        "hooks",
        "hooks.json",
        "packages",
        "plugins",
        "prompts",
        "rules",
        "skills",
        "shell_snapshots",
        "tmp",
    ];
    // Databases separate from the user's own: what commands write there is read only in turns like this one.
    let databases = folder.join("outrigger");
    Access {
        keep: below(&folder, &runs),
        write: vec![
            folder.join("sessions"),
            folder.join("thread-writer-locks"),
            databases.clone(),
        ],
        files: vec![folder.join("auth.json")],
        made: vec![folder.join("installation_id")],
        leads: vec![("CODEX_SQLITE_HOME", databases.into())],
        read: vec![folder],
        hide: Vec::new(),
        variables: &["OPENAI_*", "CODEX_*"],
    }
}

pub(crate) struct Codex {
    task: Task,
    calls: Calls,
    thread: String,
    turn: String,
    /// Numbers of its requests, by those of our questions.
    waiting: BTreeMap<u64, Value>,
    next: u64,
    is_cancelled: bool,
    /// The items of which pieces are shown: the text, and the reasoning (`true`).
    writes: BTreeMap<bool, String>,
    used: Used,
}

impl Codex {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            calls: Calls::new("codex"),
            thread: String::new(),
            turn: String::new(),
            waiting: BTreeMap::new(),
            next: 0,
            is_cancelled: false,
            writes: BTreeMap::new(),
            used: Used::default(),
        }
    }

    /// Returns the open calls.
    pub(crate) fn calls(&mut self) -> &mut Calls {
        &mut self.calls
    }

    fn response(&mut self, id: u64, value: &Value) -> Vec<Step> {
        if let Some(error) = text(value, "/error/message") {
            return match id {
                INTERRUPT => Vec::new(),
                _ => vec![Step::End(End::Failed(error.to_owned()))],
            };
        }
        match id {
            INITIALIZE => vec![rpc::notice("initialized", &json!({})), self.thread()],
            THREAD => {
                self.thread = text(value, "/result/thread/id")
                    .unwrap_or_default()
                    .to_owned();
                let mut input = vec![json!({ "type": "text", "text": self.task.prompt })];
                input.extend(self.task.images.iter().map(|it| {
                    let url = format!("data:{};base64,{}", it.mime, it.data);
                    json!({ "type": "image", "url": url })
                }));
                let turn = json!({ "threadId": self.thread, "input": input });
                vec![
                    Step::Session(self.thread.clone()),
                    rpc::request(TURN, "turn/start", &turn),
                ]
            }
            TURN => {
                self.turn = text(value, "/result/turn/id")
                    .unwrap_or_default()
                    .to_owned();
                if self.is_cancelled {
                    vec![self.interrupt()]
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        }
    }

    /// Starts a thread. Every command and every change is submitted to us. In our sandbox it needs none of its own.
    fn thread(&self) -> Step {
        let sandbox = if self.task.is_sandboxed {
            "danger-full-access"
        } else {
            "workspace-write"
        };
        let mut params = json!({
            "cwd": self.task.folder, "approvalPolicy": "untrusted", "sandbox": sandbox, "model": self.task.model,
        });
        match (&self.task.resume, &mut params) {
            (Some(id), Value::Object(fields)) => {
                fields.insert("threadId".to_owned(), json!(id));
                rpc::request(THREAD, "thread/resume", &params)
            }
            _ => rpc::request(THREAD, "thread/start", &params),
        }
    }

    fn interrupt(&self) -> Step {
        let turn = json!({ "threadId": self.thread, "turnId": self.turn });
        rpc::request(INTERRUPT, "turn/interrupt", &turn)
    }

    fn asked(&mut self, method: &str, id: &Value, params: &Value, at: Millis) -> Vec<Step> {
        // One answer to two questions would allow what was not shown.
        if self.waiting.values().any(|it| it == id) {
            return vec![as_it_came(&format!("asked again: {params}"), at)];
        }
        let item = text(params, "/itemId").unwrap_or_default().to_owned();
        let call = match method {
            "item/commandExecution/requestApproval" => {
                let known = self.calls.get(&item).cloned();
                // Part of a command line is asked about separately.
                text(params, "/command")
                    .map(|it| self.command(it, params))
                    .or(known)
            }
            "item/fileChange/requestApproval" => self.calls.get(&item).cloned(),
            _ => None,
        };
        let Some(call) = call else {
            return vec![rpc::no_method(id, method)];
        };
        if call.tool == "apply_patch" && text(&call.input, "/patchText").is_none() {
            let words = "a change was refused, since it cannot be shown as a patch";
            let refused = rpc::answer(id, &json!({ "decision": "decline" }));
            return vec![as_it_came(words, at), refused];
        }
        self.calls.asked(&item);
        self.next += 1;
        self.waiting.insert(self.next, id.clone());
        vec![Step::Ask(Question {
            id: self.next,
            call: item,
            tool: call.tool,
            input: call.input,
        })]
    }

    fn notified(&mut self, line: &str, method: &str, params: &Value, at: Millis) -> Vec<Step> {
        let item = params.get("item").unwrap_or(&Value::Null);
        match method {
            "item/started" => self.starts(item, at).into_iter().collect(),
            "item/completed" => self.completed(item, at),
            "item/fileChange/patchUpdated" => {
                let id = text(params, "/itemId").unwrap_or_default();
                self.calls.becomes(id, change(params));
                Vec::new()
            }
            "turn/completed" => vec![Step::End(self.ended(params))],
            "error" => {
                let words = text(params, "/error/message").unwrap_or(line);
                vec![as_it_came(words, at)]
            }
            "warning" | "deprecationNotice" => {
                let words = text(params, "/message").or(text(params, "/summary"));
                vec![as_it_came(words.unwrap_or(line), at)]
            }
            "item/agentMessage/delta" => self.piece(false, params),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.piece(true, params)
            }
            "thread/tokenUsage/updated" if text(params, "/turnId") == Some(self.turn.as_str()) => {
                self.used.add(&Used::of_codex(params));
                vec![Step::Used(self.used.clone())]
            }
            "thread/tokenUsage/updated" => Vec::new(),
            method if SILENT.contains(&method) => Vec::new(),
            _ => vec![as_it_came(line, at)],
        }
    }

    /// Returns a piece. Only one item of each kind is shown in pieces at a time: a concurrent one arrives complete.
    fn piece(&mut self, is_thought: bool, params: &Value) -> Vec<Step> {
        let item = text(params, "/itemId").unwrap_or_default();
        let writes = self.writes.entry(is_thought).or_insert(item.to_owned());
        text(params, "/delta")
            .filter(|_| writes == item)
            .and_then(|it| Step::piece(is_thought, it))
            .into_iter()
            .collect()
    }

    fn ended(&self, params: &Value) -> End {
        match text(params, "/turn/status") {
            _ if self.is_cancelled => End::Cancelled,
            Some("completed") => End::Done,
            Some("interrupted") => End::Cancelled,
            status => {
                let words = text(params, "/turn/error/message").or(status);
                End::Failed(words.unwrap_or("it failed").to_owned())
            }
        }
    }

    fn starts(&mut self, item: &Value, at: Millis) -> Option<Step> {
        let id = text(item, "/id")?;
        let (kind, call) = self.of_item(item)?;
        Some(self.calls.starts(id, call, kind, at))
    }

    /// Returns a command line, and its folder if that is not the project's.
    fn command(&self, command: &str, of: &Value) -> Call {
        let mut call = Call::bash(&script(command), None);
        let elsewhere = text(of, "/cwd").filter(|it| PathBuf::from(it) != self.task.folder);
        if let (Some(folder), Value::Object(fields)) = (elsewhere, &mut call.input) {
            fields.insert("workdir".to_owned(), json!(folder));
        }
        call
    }

    fn of_item<'v>(&self, item: &'v Value) -> Option<(&'v str, Call)> {
        match text(item, "/type")? {
            kind @ "commandExecution" => Some((kind, self.command(text(item, "/command")?, item))),
            _ => of_item(item),
        }
    }

    /// Converts a complete item.
    pub(crate) fn completed(&mut self, item: &Value, at: Millis) -> Vec<Step> {
        let of = |key: &str| text(item, key).unwrap_or_default();
        match of("/type") {
            "userMessage" => Vec::new(),
            "agentMessage" | "plan" => {
                self.writes.remove(&false);
                said(of("/text"), at).into_iter().collect()
            }
            "reasoning" => {
                self.writes.remove(&true);
                let texts: Vec<&str> = ["/summary", "/content"]
                    .map(|key| item.pointer(key))
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_array)
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                thought(&texts.join("\n\n"), at).into_iter().collect()
            }
            _ => {
                let id = of("/id");
                let begun = if self.calls.is_open(id) {
                    None
                } else {
                    self.starts(item, at)
                };
                if begun.is_none() && !self.calls.is_open(id) {
                    return vec![as_it_came(&item.to_string(), at)];
                }
                let ended = self.calls.ends(id, result_of(item), at);
                begun.into_iter().chain([ended]).collect()
            }
        }
    }
}

impl Protocol for Codex {
    fn begin(&mut self) -> Vec<Step> {
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({ "name": "outrigger", "title": "Outrigger", "version": version });
        vec![rpc::request(
            INITIALIZE,
            "initialize",
            &json!({ "clientInfo": client }),
        )]
    }

    fn line(&mut self, line: &str, at: Millis) -> Vec<Step> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return vec![as_it_came(line, at)];
        };
        let params = value.get("params").unwrap_or(&Value::Null);
        match (text(&value, "/method"), value.get("id")) {
            (Some(method), Some(id)) => self.asked(method, id, params, at),
            (Some(method), None) => self.notified(line, method, params, at),
            (None, Some(id)) => self.response(id.as_u64().unwrap_or_default(), &value),
            (None, None) => vec![as_it_came(line, at)],
        }
    }

    fn answer(&mut self, question: u64, verdict: &Verdict) -> Vec<Step> {
        let Some(id) = self.waiting.remove(&question) else {
            return Vec::new();
        };
        let decision = match verdict {
            Verdict::Allow => "accept",
            Verdict::Deny(_) => "decline",
        };
        vec![rpc::answer(&id, &json!({ "decision": decision }))]
    }

    fn cancel(&mut self) -> Vec<Step> {
        self.is_cancelled = true;
        if self.turn.is_empty() {
            Vec::new()
        } else {
            vec![self.interrupt()]
        }
    }
}

/// Returns an item's identifier, and its call.
fn of_item(item: &Value) -> Option<(&str, Call)> {
    let kind = text(item, "/type")?;
    let field = |key: &str| item.get(key).cloned().unwrap_or_default();
    let call = match kind {
        "fileChange" => change(item),
        "mcpToolCall" => {
            let name = format!("{}_{}", text(item, "/server")?, text(item, "/tool")?);
            Call::new(&name, field("arguments"))
        }
        "dynamicToolCall" => Call::new(text(item, "/tool")?, field("arguments")),
        "webSearch" => Call::new("websearch", json!({ "query": field("query") })),
        "imageView" => Call::new("read", json!({ "filePath": field("path") })),
        "collabAgentToolCall" => {
            let input = json!({ "prompt": field("prompt"), "model": field("model") });
            Call::new(text(item, "/tool")?, input)
        }
        _ => return None,
    };
    Some((kind, call))
}

/// Returns a change, without a patch if none represents it completely.
fn change(item: &Value) -> Call {
    let input = match patch(item) {
        Some(patch) => json!({ "patchText": patch }),
        None => json!({ "changes": item.get("changes") }),
    };
    Call::new("apply_patch", input)
}

fn result_of(item: &Value) -> Ended {
    let status = text(item, "/status").unwrap_or("completed");
    let mut facts = Object::new();
    let mut is_error = status != "completed";
    let output = match text(item, "/type") {
        Some("commandExecution") => {
            if let Some(exit) = item.get("exitCode").filter(|it| !it.is_null()) {
                // A command that fails is a result, as with our own tool.
                is_error = false;
                facts.insert("exit".to_owned(), exit.clone());
            }
            text(item, "/aggregatedOutput").map(str::to_owned)
        }
        Some("fileChange") => {
            facts.insert("files".to_owned(), Value::Array(files(item)));
            None
        }
        _ => {
            let error = text(item, "/error/message").map(str::to_owned);
            let texts = item
                .pointer("/result/content")
                .and_then(Value::as_array)
                .map(|it| it.iter().filter_map(|it| text(it, "/text")).collect());
            error.or_else(|| texts.map(|it: Vec<&str>| it.join("\n")))
        }
    };
    Ended {
        text: output.unwrap_or_else(|| status.to_owned()),
        is_error,
        facts,
    }
}

/// Returns the files of a change in the form of `apply_patch`.
fn files(item: &Value) -> Vec<Value> {
    changes(item).map(|Change { path, kind, diff, .. }| {
        let name = Path::new(path).file_name().unwrap_or_default();
        json!({ "filePath": path, "relativePath": name.to_string_lossy(), "type": kind, "patch": diff })
    }).collect()
}
