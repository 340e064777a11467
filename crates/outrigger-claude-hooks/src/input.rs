//! The events of a point, and the input of their commands.

use std::sync::Arc;

use outrigger_config::claude_hooks::HookEvent;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::history::History;
use outrigger_protocol::turn::HookPayload;
use serde_json::{Map, Value, json};

use crate::SessionAbout;
use crate::names::{ClaudeCall, ToolInfo, known, known_as};
use crate::result::{failed_command, response};
use crate::state::{Commands, call_of};

/// An event, with the names for its matchers and the input of its commands.
pub(crate) struct Round {
    pub(crate) event: HookEvent,
    /// Names that a matcher may match; empty if there is nothing to match.
    pub(crate) names: Vec<String>,
    pub(crate) session: String,
    /// Its conversation.
    pub(crate) history: History,
    /// Everything except `transcript_path`, whose file is written when a command runs.
    pub(crate) input: Map<String, Value>,
    /// The key of `tool_input` that was added for the command.
    pub(crate) made: Option<&'static str>,
}

/// Subject of the events.
struct Of<'a> {
    session: &'a str,
    about: &'a SessionAbout,
}

impl Commands {
    /// Returns the events of a point, one after the other.
    pub(crate) async fn rounds(
        &self,
        point: HookPoint,
        session: Option<&str>,
        item: &HookPayload,
    ) -> Vec<Round> {
        let session = session.or_else(|| item.input.get("sessionID")?.as_str());
        let Some(session) = session else {
            return Vec::new();
        };
        let event = result_of(point, item);
        // For output from before the call there may be nothing to run, and tool events are frequent.
        let event = event.or((point == HookPoint::ToolBeforeCall).then_some(HookEvent::PreToolUse));
        // The failure of a call that never started is not an event, so the session need not be read.
        if event.map_or(point == HookPoint::ToolOnError, |event| !self.runs(event)) {
            return Vec::new();
        }
        let (host, id) = (Arc::clone(&self.with.host), session.to_owned());
        let about = tokio::task::spawn_blocking(move || host.session(&id)).await;
        let about = about.unwrap_or_default();
        let of = &Of {
            session,
            about: &about,
        };
        match point {
            HookPoint::ToolBeforeCall => self.tool(HookEvent::PreToolUse, of, item),
            HookPoint::ToolAfterResult | HookPoint::ToolOnError => {
                event.map_or_else(Vec::new, |event| self.tool(event, of, item))
            }
            HookPoint::RunBeforeStart => self.prompt(of, item),
            HookPoint::ToolBeforePermission => self.question(of, item),
            HookPoint::CompactionBeforeStart => vec![self.compaction(of, item)],
            HookPoint::AgentEndBeforeStop => vec![self.stop(of, item)],
            HookPoint::RunOnError => vec![self.failure(of, item)],
            HookPoint::RuntimeDispose => vec![self.round(
                HookEvent::SessionEnd,
                vec!["other".to_owned()],
                of,
                json!({"reason": "other"}),
            )],
            _ => Vec::new(),
        }
    }

    fn round(&self, event: HookEvent, names: Vec<String>, of: &Of<'_>, own: Value) -> Round {
        let mut input = Map::new();
        let mode = match (self.with.permission_mode, of.about.agent.as_str()) {
            ("default", "plan") => "plan",
            (mode, _) => mode,
        };
        for (key, value) in [
            ("session_id", json!(of.session)),
            ("cwd", json!(self.directory)),
            ("permission_mode", json!(mode)),
            ("hook_event_name", json!(event.name())),
        ] {
            input.insert(key.to_owned(), value);
        }
        if of.about.child {
            input.insert("agent_id".to_owned(), json!(of.session));
            input.insert("agent_type".to_owned(), json!(of.about.agent));
        }
        if let Value::Object(own) = own {
            input.extend(own);
        }
        Round {
            event,
            names,
            session: of.session.to_owned(),
            history: of.about.history.clone(),
            input,
            made: None,
        }
    }

    /// Returns the events of a call, with the tool names and keys that guards know.
    fn tool(&self, event: HookEvent, of: &Of<'_>, item: &HookPayload) -> Vec<Round> {
        let tool = item
            .input
            .get("tool")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let before = event == HookEvent::PreToolUse;
        let args = if before {
            item.output.get("args")
        } else {
            item.input.get("args")
        };
        let all = self.known(tool, args.unwrap_or(&Value::Null));
        let round = |known: ClaudeCall| {
            let own = call(event, tool, &known, item);
            self.about_call(event, known, of, own)
        };
        all.into_iter().map(round).collect()
    }

    fn known(&self, tool: &str, args: &Value) -> Vec<ClaudeCall> {
        let around = ToolInfo {
            servers: &self.with.host.mcp_servers(),
            cwd: &self.directory,
            patched: &|patch| self.with.host.patched(patch),
        };
        known(tool, args, &around)
    }

    fn about_call(&self, event: HookEvent, known: ClaudeCall, of: &Of<'_>, own: Value) -> Round {
        Round {
            made: known.made,
            ..self.round(event, known.names, of, own)
        }
    }

    /// Returns the event of a user prompt; a subagent's input is not one, and its first prompt is its start.
    fn prompt(&self, of: &Of<'_>, item: &HookPayload) -> Vec<Round> {
        if of.about.child {
            let starts = !of.about.begun;
            let agent = item.input.get("agent").and_then(Value::as_str);
            let about = SessionAbout {
                agent: agent.unwrap_or(&of.about.agent).to_owned(),
                ..of.about.clone()
            };
            let of = Of {
                about: &about,
                ..*of
            };
            let name = vec![about.agent.clone()];
            let round =
                starts.then(|| self.round(HookEvent::SubagentStart, name, &of, Value::Null));
            return round.into_iter().collect();
        }
        let mut rounds = Vec::new();
        if let Some(source) = self.begins(of.session, of.about.begun) {
            rounds.push(self.round(
                HookEvent::SessionStart,
                vec![source.to_owned()],
                of,
                json!({"source": source}),
            ));
        }
        if let Some(prompt) = prompt_of(&item.output) {
            rounds.push(self.round(
                HookEvent::UserPromptSubmit,
                Vec::new(),
                of,
                json!({"prompt": prompt}),
            ));
        }
        rounds
    }

    /// Returns the event of a question. A question that a command has answered already is not reported, unless the user is
    /// asked nevertheless.
    fn question(&self, of: &Of<'_>, item: &HookPayload) -> Vec<Round> {
        let text = |key: &str| item.input.get(key).and_then(Value::as_str);
        let call = call_of(&item.input);
        let by_rule = text("id").is_some_and(|id| self.with.host.rule_asks(id));
        if !by_rule && call.as_ref().is_some_and(|call| self.allows(call)) {
            return Vec::new();
        }
        let permission = text("permission").unwrap_or_default();
        let made = call.and_then(|(session, call)| self.with.host.call(&session, &call));
        let ours = made.as_ref().map(|(tool, _)| tool.clone());
        let (tool, args) = made.unwrap_or_else(|| (permission.to_owned(), Value::Null));
        let request = |known: ClaudeCall| {
            let mut request = json!({
                "tool_name": known.names.first(),
                "outrigger_tool": ours,
                "tool_input": known.input,
                "permission": permission,
                "patterns": item.input.get("patterns"),
            });
            add_causes(&mut request, item);
            self.about_call(HookEvent::PermissionRequest, known, of, request)
        };
        let requests = self.known(&tool, &args).into_iter().map(request);
        let shown = known_as(permission);
        let notification = self.round(
            HookEvent::Notification,
            vec!["permission_prompt".to_owned()],
            of,
            json!({
                "message": format!("Outrigger needs your permission to use {shown}"),
                "title": "Permission needed",
                "notification_type": "permission_prompt",
            }),
        );
        requests.chain(std::iter::once(notification)).collect()
    }

    fn compaction(&self, of: &Of<'_>, item: &HookPayload) -> Round {
        self.compacted(of.session);
        let text = |key: &str| item.input.get(key).and_then(Value::as_str);
        let by_itself = of.about.compacts_by_itself;
        let trigger = if by_itself { "auto" } else { "manual" };
        self.round(
            HookEvent::PreCompact,
            vec![trigger.to_owned()],
            of,
            json!({"trigger": trigger, "custom_instructions": text("instructions")}),
        )
    }

    /// Returns the event of a turn that an error has ended.
    fn failure(&self, of: &Of<'_>, item: &HookPayload) -> Round {
        let error = item.input.get("error").unwrap_or(&Value::Null);
        let kind = kind_of(error);
        let details = error.get("data").and_then(|data| data.get("message"));
        let own = json!({"error": kind, "error_details": details});
        self.round(HookEvent::StopFailure, vec![kind.to_owned()], of, own)
    }

    fn stop(&self, of: &Of<'_>, item: &HookPayload) -> Round {
        let (event, names) = if of.about.child {
            (HookEvent::SubagentStop, vec![of.about.agent.clone()])
        } else {
            (HookEvent::Stop, Vec::new())
        };
        let own = |key: &str| item.input.get(key).cloned().unwrap_or_default();
        let again = own("active") == Value::Bool(true);
        self.round(
            event,
            names,
            of,
            json!({"stop_hook_active": again, "last_assistant_message": own("lastMessage")}),
        )
    }
}

/// Returns Claude Code's name of a turn's error.
fn kind_of(error: &Value) -> &'static str {
    let status = error.get("data").and_then(|data| data.get("statusCode"));
    let name = error
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (name, status.and_then(Value::as_u64)) {
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => "authentication_failed",
        ("MessageOutputLengthError", _) => "max_output_tokens",
        (_, Some(402)) => "billing_error",
        (_, Some(429)) => "rate_limit",
        (_, Some(400..500)) => "invalid_request",
        (_, Some(500..)) => "server_error",
        _ => "unknown",
    }
}

/// Adds the causes of a call, if the point has them; not a key of Claude Code.
fn add_causes(own: &mut Value, item: &HookPayload) {
    if let (Some(fields), Some(causes)) = (own.as_object_mut(), item.input.get("provenance")) {
        fields.insert("outrigger_provenance".to_owned(), causes.clone());
    }
}

/// Returns the input about a call of Outrigger's `tool`, and about its result.
fn call(event: HookEvent, tool: &str, known: &ClaudeCall, item: &HookPayload) -> Value {
    let args = &known.input;
    let mut own = json!({
        "tool_name": known.names.first(),
        "outrigger_tool": tool,
        "tool_input": args,
        "tool_use_id": item.input.get("callID"),
    });
    add_causes(&mut own, item);
    let Some(fields) = own.as_object_mut() else {
        return own;
    };
    match event {
        HookEvent::PostToolUse => {
            let response = response(tool, args, &item.output);
            fields.insert("tool_response".to_owned(), response);
        }
        HookEvent::PostToolUseFailure => {
            let shown = item.input.get("message").cloned();
            let error =
                shown.or_else(|| failed_command(&item.input, &item.output).map(Value::String));
            let stopped = item.input.get("code") == Some(&json!("tool.cancelled"));
            fields.insert("error".to_owned(), error.unwrap_or_default());
            fields.insert("is_interrupt".to_owned(), json!(stopped));
        }
        _ => {}
    }
    own
}

/// Returns which of the two result events applies. A call that never started has none: it was refused, and by whom is known.
/// A command with a failing exit code counts as failed there, although the tool call succeeded.
pub(crate) fn result_of(point: HookPoint, item: &HookPayload) -> Option<HookEvent> {
    match point {
        HookPoint::ToolAfterResult if failed_command(&item.input, &item.output).is_some() => {
            Some(HookEvent::PostToolUseFailure)
        }
        HookPoint::ToolAfterResult => Some(HookEvent::PostToolUse),
        HookPoint::ToolOnError => {
            let began = item.input.get("began") == Some(&Value::Bool(true));
            began.then_some(HookEvent::PostToolUseFailure)
        }
        _ => None,
    }
}

/// Returns what the user has typed, without added text. `None` if that is empty.
fn prompt_of(output: &Value) -> Option<String> {
    let parts = output.get("parts").and_then(Value::as_array);
    let said = parts.into_iter().flatten().filter_map(|part| {
        let key = match part.get("type").and_then(Value::as_str) {
            Some("text") if part.get("synthetic") != Some(&json!(true)) => "text",
            // A command that a subagent runs.
            Some("subtask") => "prompt",
            _ => return None,
        };
        part.get(key).and_then(Value::as_str)
    });
    let said: Vec<&str> = said.collect();
    (!said.is_empty()).then(|| said.join("\n"))
}
