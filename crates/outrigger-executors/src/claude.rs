//! Claude Code: `claude -p` with JSON lines in both directions (2.1.332).
//!
//! Every call is submitted to us before it runs, by a hook (`PreToolUse`) that calls back: its own rules ask only about
//! some.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use crate::access::{Access, below};
use crate::calls::{
    Call, Calls, Ended, MAX_CONTENT, as_it_came, only, renamed, said, text, thought,
};
use crate::step::{End, Protocol, Question, Step, Task, Verdict};
use crate::used::Used;

/// How long it waits for our answer, in seconds: as long as a user needs.
const ANSWER_TIMEOUT: u32 = 86_400;
/// Tools with which it would wait for its own user.
const NOBODY_THERE: &str = "AskUserQuestion,EnterPlanMode,ExitPlanMode";

/// Returns the arguments. Settings of the project are disabled: they could make it run commands.
pub(crate) fn command(task: &Task) -> Vec<String> {
    let mut words = vec![
        "-p",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool",
        "stdio",
        "--setting-sources",
        "user",
        "--strict-mcp-config",
        "--disallowedTools",
        NOBODY_THERE,
    ];
    let named = [("--resume", &task.resume), ("--model", &task.model)];
    for (option, value) in named {
        words.extend(value.iter().flat_map(|value| [option, value.as_str()]));
    }
    words.into_iter().map(str::to_owned).collect()
}

pub(crate) fn access(home: &Path) -> Access {
    let folder = home.join(".claude");
    // If the project is the home folder itself, the rest may be written to, too.
    let runs = [
        "local",
        "session-env",
        "shell-snapshots",
        "settings.json",
        "settings.local.json",
        "CLAUDE.md",
        "agents",
        "commands",
        "hooks",
        "output-styles",
        "plugins",
        "skills",
        "workflows",
    ];
    Access {
        keep: below(&folder, &runs),
        write: below(&folder, &["projects", "todos", "file-history"]),
        files: vec![folder.join(".credentials.json")],
        // Sockets of the user's other sessions, which accept messages, and their keys.
        hide: vec![folder.join("sessions")],
        // Its servers run later.
        read: vec![folder, home.join(".claude.json")],
        variables: &["ANTHROPIC_*", "CLAUDE_CODE_*", "CLAUDE_CONFIG_DIR"],
        ..Access::default()
    }
}

/// What waits for our answer.
enum PendingRequest {
    Hook { request: String },
    Permission { request: String, input: Value },
}

impl PendingRequest {
    fn request(&self) -> &String {
        match self {
            Self::Hook { request } | Self::Permission { request, .. } => request,
        }
    }
}

pub(crate) struct Claude {
    task: Task,
    calls: Calls,
    waiting: BTreeMap<u64, PendingRequest>,
    next: u64,
    is_cancelled: bool,
    has_session: bool,
}

impl Claude {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            calls: Calls::new("claude"),
            waiting: BTreeMap::new(),
            next: 0,
            is_cancelled: false,
            has_session: false,
        }
    }

    fn system(&mut self, line: &str, value: &Value, at: Millis) -> Vec<Step> {
        match text(value, "/subtype") {
            Some("init") if self.has_session => Vec::new(),
            Some("init") => {
                self.has_session = true;
                text(value, "/session_id")
                    .map(str::to_owned)
                    .map(Step::Session)
                    .into_iter()
                    .collect()
            }
            Some("status" | "thinking_tokens") => Vec::new(),
            _ => vec![as_it_came(line, at)],
        }
    }

    fn message(&mut self, line: &str, value: &Value, at: Millis) -> Vec<Step> {
        let Some(blocks) = value.pointer("/message/content").and_then(Value::as_array) else {
            return vec![as_it_came(line, at)];
        };
        let result = value.get("tool_use_result");
        blocks
            .iter()
            .filter_map(|block| self.block(block, result, at))
            .collect()
    }

    /// Converts a block of a message; `result`: the structured result of a call.
    pub(crate) fn block(
        &mut self,
        block: &Value,
        result: Option<&Value>,
        at: Millis,
    ) -> Option<Step> {
        let of = |key: &str| text(block, key).unwrap_or_default();
        match of("/type") {
            "text" => said(of("/text"), at),
            "thinking" => thought(of("/thinking"), at),
            "tool_use" => {
                let name = of("/name");
                let call = ours(name, block.get("input").unwrap_or(&Value::Null));
                Some(self.calls.starts(of("/id"), call, name, at))
            }
            "tool_result" => {
                let id = of("/tool_use_id");
                let is_error = block.get("is_error") == Some(&Value::Bool(true));
                let facts = self.calls.get(id).zip(result).filter(|_| !is_error);
                let ended = Ended {
                    text: content(block.get("content").unwrap_or(&Value::Null)),
                    is_error,
                    facts: facts
                        .map(|(call, it)| facts_of(call, it))
                        .unwrap_or_default(),
                };
                Some(self.calls.ends(id, ended, at))
            }
            _ => Some(as_it_came(&block.to_string(), at)),
        }
    }

    fn request(&mut self, value: &Value, at: Millis) -> Vec<Step> {
        let request = text(value, "/request_id").unwrap_or_default().to_owned();
        // One answer to two questions would allow what was not shown.
        if self.waiting.values().any(|it| *it.request() == request) {
            return vec![as_it_came(&value.to_string(), at)];
        }
        let of = |pointer: &str| text(value, pointer).unwrap_or_default();
        let (waiting, name, input) = match of("/request/subtype") {
            "hook_callback" => {
                let input = value.pointer("/request/input/tool_input");
                let waiting = PendingRequest::Hook { request };
                (waiting, of("/request/input/tool_name"), input)
            }
            "can_use_tool" => {
                let input = value.pointer("/request/input");
                let waiting = PendingRequest::Permission {
                    request,
                    input: input.cloned().unwrap_or_default(),
                };
                (waiting, of("/request/tool_name"), input)
            }
            other => {
                let error = format!("{other} is not supported");
                let response = json!({ "subtype": "error", "request_id": request, "error": error });
                return vec![send(
                    &json!({ "type": "control_response", "response": response }),
                )];
            }
        };
        let call = ours(name, input.unwrap_or(&Value::Null));
        let id = of("/request/tool_use_id").to_owned();
        self.calls.asked(&id);
        self.next += 1;
        self.waiting.insert(self.next, waiting);
        vec![Step::Ask(Question {
            id: self.next,
            call: id,
            tool: call.tool,
            input: call.input,
        })]
    }

    fn result(&self, value: &Value) -> End {
        let is_error = value.get("is_error") == Some(&Value::Bool(true));
        match text(value, "/subtype") {
            _ if self.is_cancelled => End::Cancelled,
            Some("success") if !is_error => End::Done,
            kind => {
                let errors: Vec<&str> = value
                    .get("errors")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                let words = if errors.is_empty() {
                    text(value, "/result").map(str::to_owned)
                } else {
                    Some(errors.join("; "))
                };
                let kind = kind.unwrap_or("an error");
                End::Failed(words.unwrap_or_else(|| format!("it ended with {kind}")))
            }
        }
    }
}

impl Protocol for Claude {
    fn begin(&mut self) -> Vec<Step> {
        let hook =
            json!({ "matcher": null, "hookCallbackIds": ["call"], "timeout": ANSWER_TIMEOUT });
        let begin = json!({ "subtype": "initialize", "hooks": { "PreToolUse": [hook] } });
        let mut content = vec![json!({ "type": "text", "text": self.task.prompt })];
        content.extend(self.task.images.iter().map(|it| {
            let source = json!({ "type": "base64", "media_type": it.mime, "data": it.data });
            json!({ "type": "image", "source": source })
        }));
        vec![
            send(&json!({ "type": "control_request", "request_id": "begin", "request": begin })),
            send(&json!({
                "type": "user", "message": { "role": "user", "content": content }, "parent_tool_use_id": null, "session_id": "",
            })),
        ]
    }

    fn line(&mut self, line: &str, at: Millis) -> Vec<Step> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return vec![as_it_came(line, at)];
        };
        match text(&value, "/type") {
            Some("system") => self.system(line, &value, at),
            Some("assistant" | "user") => self.message(line, &value, at),
            Some("control_request") => self.request(&value, at),
            Some("control_response") => match text(&value, "/response/error") {
                Some(error) => vec![Step::End(End::Failed(error.to_owned()))],
                None => Vec::new(),
            },
            Some("result") => {
                let used = Step::Used(Used::of_claude(&value));
                vec![used, Step::End(self.result(&value))]
            }
            Some("stream_event") => piece(&value).into_iter().collect(),
            Some("keep_alive" | "rate_limit_event" | "tool_progress") => Vec::new(),
            _ => vec![as_it_came(line, at)],
        }
    }

    fn answer(&mut self, question: u64, verdict: &Verdict) -> Vec<Step> {
        let Some(waiting) = self.waiting.remove(&question) else {
            return Vec::new();
        };
        let (request, response) = match (waiting, verdict) {
            (PendingRequest::Hook { request }, verdict) => {
                let (decision, reason) = match verdict {
                    Verdict::Allow => ("allow", "allowed"),
                    Verdict::Deny(why) => ("deny", why.as_str()),
                };
                let output = json!({
                    "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason,
                });
                (request, json!({ "hookSpecificOutput": output }))
            }
            (PendingRequest::Permission { request, input }, Verdict::Allow) => (
                request,
                json!({ "behavior": "allow", "updatedInput": input }),
            ),
            (PendingRequest::Permission { request, .. }, Verdict::Deny(why)) => {
                (request, json!({ "behavior": "deny", "message": why }))
            }
        };
        let response = json!({ "subtype": "success", "request_id": request, "response": response });
        vec![send(
            &json!({ "type": "control_response", "response": response }),
        )]
    }

    fn cancel(&mut self) -> Vec<Step> {
        self.is_cancelled = true;
        let request = json!({ "subtype": "interrupt" });
        vec![send(
            &json!({ "type": "control_request", "request_id": "cancel", "request": request }),
        )]
    }
}

/// Returns a piece of its output. Its own subagents' output arrives complete.
fn piece(value: &Value) -> Option<Step> {
    let is_own = value.get("parent_tool_use_id").is_none_or(Value::is_null);
    let delta = value.pointer("/event/delta").filter(|_| is_own)?;
    match text(delta, "/type")? {
        "text_delta" => Step::piece(false, text(delta, "/text")?),
        "thinking_delta" => Step::piece(true, text(delta, "/thinking")?),
        _ => None,
    }
}

fn send(value: &Value) -> Step {
    Step::Send(value.to_string())
}

/// Converts a call of one of its tools to one of ours.
fn ours(name: &str, input: &Value) -> Call {
    let path = ("file_path", "filePath");
    match name {
        "Bash" => Call::new("bash", only(input, &["command", "description"])),
        "Read" => {
            let input = renamed(input, &[path]);
            Call::new("read", only(&input, &["filePath", "offset", "limit"]))
        }
        "Edit" => {
            let names = [
                path,
                ("old_string", "oldString"),
                ("new_string", "newString"),
                ("replace_all", "replaceAll"),
            ];
            Call::new("edit", renamed(input, &names))
        }
        "Write" => Call::new("write", renamed(input, &[path])),
        "Glob" => Call::new("glob", only(input, &["pattern", "path"])),
        "Grep" => {
            let input = renamed(input, &[("glob", "include")]);
            Call::new("grep", only(&input, &["pattern", "path", "include"]))
        }
        "WebFetch" => Call::new("webfetch", only(input, &["url"])),
        "WebSearch" => Call::new("websearch", only(input, &["query"])),
        // `mcp__SERVER__TOOL`, which is `SERVER_TOOL` here.
        _ => match name
            .strip_prefix("mcp__")
            .and_then(|it| it.split_once("__"))
        {
            Some((server, tool)) => Call::new(&format!("{server}_{tool}"), input.clone()),
            None => Call::new(name, input.clone()),
        },
    }
}

/// Returns a result as text.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| match text(block, "/text") {
                Some(text) => text.to_owned(),
                None => format!("[{}]", text(block, "/type").unwrap_or("unknown")),
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Converts its structured result to the keys of our tools.
fn facts_of(call: &Call, result: &Value) -> Object {
    let mut facts = Object::new();
    match call.tool.as_str() {
        "bash" => {
            for key in ["stdout", "stderr"] {
                let text =
                    text(result, &format!("/{key}")).map(|text| (key.to_owned(), json!(text)));
                facts.extend(text);
            }
        }
        "write" => {
            let before = result.get("originalFile").unwrap_or(&Value::Null);
            facts.insert("exists".to_owned(), json!(!before.is_null()));
            let before = before.as_str().filter(|text| text.len() <= MAX_CONTENT);
            let after = text(&call.input, "/content");
            if let (Some(before), Some(after)) = (before, after) {
                let diff = json!({ "before": before, "after": after });
                facts.insert("filediff".to_owned(), diff);
            }
        }
        _ => {}
    }
    facts
}
