//! Reads sessions that Claude Code and Codex store in files, with the parsers of their output, whose lines are similar.
//!
//! A reader gets the parsed lines of a file, in order. Lines about the program itself are skipped.

mod inline_subagents;
mod printed_form;

use outrigger_protocol::Millis;
use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::message::{CacheTokens, Tokens};
use serde_json::{Value, json};

use self::inline_subagents::{Inline, Started, Whose, begun};
use self::printed_form::in_printed_form;
use crate::calls::{Call, Ended, said, text, thought};
use crate::claude::Claude;
use crate::codex::{Codex, script};
use crate::step::{Step, Task, VendorOutput};

/// The meaning of a line of a stored session.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// The session: its identifier, folder and the program's version, each if the line contains it.
    Session {
        /// Identifier.
        id: Option<String>,
        /// Working directory.
        folder: Option<String>,
        /// Version.
        version: Option<String>,
    },
    /// A title; the last one wins.
    Title(String),
    /// The user's prompt: texts and images (`data:` URLs).
    Prompt(Vec<Piece>),
    /// What follows belongs to this answer of this model.
    Answer {
        /// Lines with the same id belong together.
        id: String,
        /// Model.
        model: String,
        /// Its usage, if known.
        tokens: Option<Tokens>,
    },
    /// The agent's output or action.
    Say(VendorOutput),
    /// A summary that replaces everything before it.
    Summary(String),
}

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A picture.
    Picture {
        /// Its media type.
        mime: String,
        /// Its contents, as a `data:` URL.
        url: String,
    },
}

/// Lines of `~/.claude/projects/*/*.jsonl` (1.0.60, 2.1.197, 2.1.332).
pub struct StoredClaude {
    claude: Claude,
    whose: Whose,
}

impl StoredClaude {
    /// Creates a reader for the file of a session, or of a subagent (`SESSION/subagents/agent-*.jsonl`).
    #[must_use]
    pub fn new(is_subagent: bool) -> Self {
        Self::of(if is_subagent {
            Whose::File
        } else {
            Whose::Session(Started::default())
        })
    }

    /// Creates a reader for a subagent in the file of its session, by its [identifier](Self::subagent).
    #[must_use]
    pub fn inline(subagent: &str) -> Self {
        Self::of(Whose::Inline(Inline::new(subagent)))
    }

    /// Returns the identifier of the subagent that begins with a line of its session's file, as in versions before 2.0.
    #[must_use]
    pub fn subagent(line: &Value) -> Option<&str> {
        begun(line)
    }

    fn of(whose: Whose) -> Self {
        Self {
            claude: Claude::new(Task::default()),
            whose,
        }
    }

    /// Returns the conversation of a line: that of a subagent starts with its session's identifier.
    fn id(&self, line: &Value) -> Option<String> {
        let session = text(line, "/sessionId")?;
        match &self.whose {
            Whose::Session(_) => Some(session.to_owned()),
            Whose::File => Some(subagent(session, text(line, "/agentId")?)),
            Whose::Inline(inline) => Some(subagent(session, &inline.id)),
        }
    }

    /// Converts a line.
    #[must_use]
    pub fn line(&mut self, line: &Value, at: Millis) -> Vec<Stored> {
        let flag = |key: &str| line.get(key) == Some(&Value::Bool(true));
        let title = |key: &str| {
            let title = text(line, key).map(|it| Stored::Title(it.to_owned()));
            title.into_iter().collect()
        };
        let has = self.whose.has(line);
        match text(line, "/type") {
            // The titles are the session's.
            Some("summary" | "ai-title" | "custom-title")
                if matches!(self.whose, Whose::Inline(_)) =>
            {
                Vec::new()
            }
            Some("summary") => title("/summary"),
            Some("ai-title") => title("/aiTitle"),
            Some("custom-title") => title("/customTitle"),
            // Of another conversation, or the program's own text.
            Some("user" | "assistant") if !has || flag("isMeta") => Vec::new(),
            Some("user") if flag("isCompactSummary") => {
                let pieces = pieces(line.pointer("/message/content"));
                let texts = pieces.into_iter().filter_map(|piece| match piece {
                    Piece::Text(text) => Some(text),
                    Piece::Picture { .. } => None,
                });
                vec![Stored::Summary(texts.collect::<Vec<_>>().join("\n\n"))]
            }
            Some("user") => self.user(line, at),
            Some("assistant") => self.assistant(line, at),
            _ => Vec::new(),
        }
    }

    fn user(&mut self, line: &Value, at: Millis) -> Vec<Stored> {
        let of = |key: &str| text(line, key).map(str::to_owned);
        let mut out = vec![Stored::Session {
            id: self.id(line),
            folder: of("/cwd"),
            version: of("/version"),
        }];
        let pieces = pieces(line.pointer("/message/content"));
        if !pieces.is_empty() {
            out.push(Stored::Prompt(pieces));
        }
        let result = line.get("toolUseResult");
        let blocks = blocks(line).filter(|block| text(block, "/type") == Some("tool_result"));
        let steps = blocks.filter_map(|block| self.claude.block(block, result, at));
        out.extend(steps.filter_map(spoken));
        if text(line, "/toolUseResult/stdout").is_some() {
            out.iter_mut().for_each(exited);
        }
        if let (Some(session), Some(agent)) = (
            text(line, "/sessionId"),
            text(line, "/toolUseResult/agentId"),
        ) {
            let child = subagent(session, agent);
            out.iter_mut().for_each(|stored| led(stored, &child));
        }
        if let (Whose::Session(started), Some(session)) = (&self.whose, text(line, "/sessionId")) {
            out.iter_mut()
                .for_each(|stored| started.lead(stored, session));
        }
        out
    }

    fn assistant(&mut self, line: &Value, at: Millis) -> Vec<Stored> {
        let of = |key: &str| text(line, key).unwrap_or_default().to_owned();
        let count = |key: &str| {
            let count = line.pointer(&format!("/message/usage/{key}"));
            count.and_then(Value::as_u64).unwrap_or_default()
        };
        let tokens = line.pointer("/message/usage").map(|_| Tokens {
            total: None,
            input: count("input_tokens"),
            output: count("output_tokens"),
            reasoning: 0,
            cache: CacheTokens {
                read: count("cache_read_input_tokens"),
                write: count("cache_creation_input_tokens"),
            },
        });
        let answer = Stored::Answer {
            id: of("/message/id"),
            model: of("/message/model"),
            tokens,
        };
        let steps = blocks(line).filter_map(|block| self.claude.block(block, None, at));
        let said = steps.filter_map(spoken).map(delegated);
        std::iter::once(answer).chain(said).collect()
    }
}

/// Renames the tool that starts a subagent to ours.
fn delegated(mut stored: Stored) -> Stored {
    if let Stored::Say(VendorOutput {
        output: AgentOutput::ToolUse { tool_name, .. },
        ..
    }) = &mut stored
        && ["Agent", "Task"].contains(&tool_name.as_str())
    {
        "task".clone_into(tool_name);
    }
    stored
}

/// Lines of `~/.codex/sessions/**/rollout-*.jsonl` (0.171.0, and earlier versions without items).
pub struct StoredCodex {
    codex: Codex,
    /// The file has complete items: the model's inputs and outputs only repeat them.
    has_items: bool,
    model: String,
    answers: u64,
}

/// The start of texts that Codex itself inserts among the user's.
const OWN_WORDS: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "# AGENTS.md instructions",
];

impl StoredCodex {
    /// Creates a reader for a file with complete items (`item_completed`) or without.
    #[must_use]
    pub fn new(has_items: bool) -> Self {
        Self {
            codex: Codex::new(Task::default()),
            has_items,
            model: String::new(),
            answers: 0,
        }
    }

    /// Returns whether a line, as text, contains a complete item.
    #[must_use]
    pub fn is_item(line: &str) -> bool {
        line.contains(r#""type":"item_completed""#)
    }

    /// Converts a line.
    #[must_use]
    pub fn line(&mut self, line: &Value, at: Millis) -> Vec<Stored> {
        let payload = line.get("payload").unwrap_or(&Value::Null);
        let of = |key: &str| text(payload, key).map(str::to_owned);
        match (text(line, "/type"), text(payload, "/type")) {
            (Some("session_meta"), _) => vec![Stored::Session {
                id: of("/id"),
                folder: of("/cwd"),
                version: of("/cli_version"),
            }],
            (Some("turn_context"), _) => {
                self.model = of("/model").unwrap_or_default();
                Vec::new()
            }
            (Some("compacted"), _) => of("/message").map(Stored::Summary).into_iter().collect(),
            (Some("event_msg"), Some("token_count")) => self.used(payload),
            (Some("event_msg"), Some("item_completed")) => {
                let item = payload.get("item").unwrap_or(&Value::Null);
                self.item(item, at)
            }
            (Some("response_item"), Some(kind)) if !self.has_items => {
                self.response(kind, payload, at)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the current answer.
    fn answer(&self, tokens: Option<Tokens>) -> Stored {
        Stored::Answer {
            id: self.answers.to_string(),
            model: self.model.clone(),
            tokens,
        }
    }

    /// Returns the usage of the last request; the next answer starts.
    fn used(&mut self, payload: &Value) -> Vec<Stored> {
        let Some(used) = payload.pointer("/info/last_token_usage") else {
            return Vec::new();
        };
        let count = |key: &str| used.get(key).and_then(Value::as_u64).unwrap_or_default();
        let read = count("cached_input_tokens");
        let reasoning = count("reasoning_output_tokens");
        let tokens = Tokens {
            total: None,
            input: count("input_tokens").saturating_sub(read),
            output: count("output_tokens").saturating_sub(reasoning),
            reasoning,
            cache: CacheTokens { read, write: 0 },
        };
        let answer = self.answer(Some(tokens));
        self.answers += 1;
        vec![answer]
    }

    fn item(&mut self, item: &Value, at: Millis) -> Vec<Stored> {
        let item = in_printed_form(item);
        if text(&item, "/type") == Some("userMessage") {
            return prompt(item.get("content"));
        }
        let steps = self.codex.completed(&item, at);
        self.spoken(steps)
    }

    fn spoken(&self, steps: Vec<Step>) -> Vec<Stored> {
        let said: Vec<Stored> = steps.into_iter().filter_map(spoken).collect();
        if said.is_empty() {
            said
        } else {
            std::iter::once(self.answer(None)).chain(said).collect()
        }
    }

    fn response(&mut self, kind: &str, item: &Value, at: Millis) -> Vec<Stored> {
        let of = |key: &str| text(item, key).unwrap_or_default();
        let calls = self.codex.calls();
        let steps = match (kind, of("/role")) {
            ("message", "user") => return prompt(item.get("content")),
            ("message", "assistant") => {
                let texts = pieces(item.get("content"));
                let texts = texts.into_iter().filter_map(|piece| match piece {
                    Piece::Text(text) => said(&text, at),
                    Piece::Picture { .. } => None,
                });
                texts.collect()
            }
            ("reasoning", _) => {
                let summary = item.get("summary").and_then(Value::as_array);
                let texts = summary.into_iter().flatten();
                let texts: Vec<&str> = texts.filter_map(|it| text(it, "/text")).collect();
                thought(&texts.join("\n\n"), at).into_iter().collect()
            }
            ("function_call", _) => {
                let arguments = serde_json::from_str(of("/arguments"));
                let arguments = arguments.unwrap_or_else(|_| json!(of("/arguments")));
                vec![calls.starts(
                    of("/call_id"),
                    function(of("/name"), arguments),
                    of("/name"),
                    at,
                )]
            }
            ("custom_tool_call", _) => {
                let input = of("/input");
                let call = match of("/name") {
                    "apply_patch" => Call::new("apply_patch", json!({ "patchText": input })),
                    name => Call::new(name, json!({ "input": input })),
                };
                vec![calls.starts(of("/call_id"), call, of("/name"), at)]
            }
            ("function_call_output" | "custom_tool_call_output", _) => {
                vec![calls.ends(of("/call_id"), output(item), at)]
            }
            _ => Vec::new(),
        };
        self.spoken(steps)
    }
}

/// Converts a Codex function call to one of ours.
fn function(name: &str, arguments: Value) -> Call {
    let command = arguments.get("command").or(arguments.get("cmd"));
    let command = command.and_then(|command| match command {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(command_line(&words))
        }
        _ => None,
    });
    match command.filter(|_| ["shell", "shell_command", "exec_command"].contains(&name)) {
        Some(command) => Call::bash(&command, None),
        None => Call::new(name, arguments),
    }
}

/// Returns LINE of `bash -lc LINE`, otherwise the words.
fn command_line(words: &[&str]) -> String {
    match words {
        [shell, "-lc" | "-c", line] if shell.ends_with("sh") => (*line).to_owned(),
        words => script(&words.join(" ")),
    }
}

fn output(item: &Value) -> Ended {
    let output = item.get("output").unwrap_or(&Value::Null);
    // Older ones are JSON in a string: `{output, metadata: {exit_code}}`.
    let inner = output
        .as_str()
        .and_then(|it| serde_json::from_str::<Value>(it).ok());
    let value = inner.as_ref().filter(|it| it.is_object()).unwrap_or(output);
    let said = text(value, "/output")
        .or(text(value, "/content"))
        .or(value.as_str());
    let exit = value.pointer("/metadata/exit_code").cloned();
    Ended {
        text: said.map_or_else(|| value.to_string(), str::to_owned),
        is_error: value.get("success") == Some(&Value::Bool(false)),
        facts: exit.map(|it| ("exit".to_owned(), it)).into_iter().collect(),
    }
}

fn subagent(session: &str, agent: &str) -> String {
    format!("{session}/{agent}")
}

/// Adds the conversation of a started subagent to its call.
fn led(stored: &mut Stored, child: &str) {
    if let Stored::Say(VendorOutput {
        output: AgentOutput::ToolResult { .. },
        facts,
    }) = stored
    {
        facts.insert("sessionId".to_owned(), json!(child));
    }
}

/// Adds exit code 0 to a command that did not fail, which the file omits.
fn exited(stored: &mut Stored) {
    if let Stored::Say(VendorOutput {
        output: AgentOutput::ToolResult {
            is_error: false, ..
        },
        facts,
    }) = stored
    {
        facts.entry("exit").or_insert(json!(0));
    }
}

fn prompt(content: Option<&Value>) -> Vec<Stored> {
    let is_users = |piece: &Piece| match piece {
        Piece::Text(text) => !OWN_WORDS.iter().any(|words| text.starts_with(words)),
        Piece::Picture { .. } => true,
    };
    let pieces: Vec<Piece> = pieces(content).into_iter().filter(is_users).collect();
    if pieces.is_empty() {
        Vec::new()
    } else {
        vec![Stored::Prompt(pieces)]
    }
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    let content = line.pointer("/message/content").and_then(Value::as_array);
    content.into_iter().flatten()
}

/// Converts texts and images of a prompt, in the forms of both.
fn pieces(content: Option<&Value>) -> Vec<Piece> {
    let piece = |block: &Value| {
        if let Some(said) = text(block, "/text") {
            return Some(Piece::Text(said.to_owned()));
        }
        if let Some(data) = text(block, "/source/data") {
            let mime = text(block, "/source/media_type")?.to_owned();
            let url = format!("data:{mime};base64,{data}");
            return Some(Piece::Picture { mime, url });
        }
        let url = text(block, "/image_url")?.to_owned();
        let mime = url
            .strip_prefix("data:")?
            .split([';', ','])
            .next()?
            .to_owned();
        Some(Piece::Picture { mime, url })
    };
    match content {
        Some(Value::String(text)) if !text.is_empty() => vec![Piece::Text(text.clone())],
        Some(Value::Array(blocks)) => blocks.iter().filter_map(piece).collect(),
        _ => Vec::new(),
    }
}

/// Returns the output of a step. The file does not show whether the user was asked about a call.
fn spoken(step: Step) -> Option<Stored> {
    let Step::Say(mut said) = step else {
        return None;
    };
    if let Some(Value::Object(whose)) = said.facts.get_mut(outrigger_protocol::merged::EXECUTOR) {
        whose.remove("unasked");
    }
    Some(Stored::Say(said))
}
