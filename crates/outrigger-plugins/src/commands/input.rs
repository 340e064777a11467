//! Which events a point stands for, and what their commands are given.

use outrigger_config::claude_hooks::HookEvent;
use outrigger_protocol::turn::HookPayload;
use serde_json::{Map, Value, json};

use super::names::{names, to_theirs};
use super::state::{Commands, call_of};

/// An event, with what its matchers look at and what its commands read.
pub(super) struct Round {
    pub(super) event: HookEvent,
    /// Names that a matcher may mean; empty where there is nothing to match.
    pub(super) names: Vec<String>,
    pub(super) input: Value,
}

impl Commands {
    /// The events of a point, one after the other.
    pub(super) fn rounds(
        &self,
        point: &str,
        session: Option<&str>,
        item: &HookPayload,
    ) -> Vec<Round> {
        let session = session.or_else(|| item.input.get("sessionID")?.as_str());
        let Some(session) = session else {
            return Vec::new();
        };
        match point {
            "tool.before_call" => vec![self.tool(HookEvent::PreToolUse, session, item)],
            "tool.after_result" => vec![self.tool(HookEvent::PostToolUse, session, item)],
            "run.before_start" => self.prompt(session, item),
            "tool.before_permission" => self.question(session, item),
            "compaction.before_start" => vec![self.compaction(session)],
            "agent_end.before_stop" => vec![self.stop(session, item)],
            "runtime.dispose" => vec![self.round(
                HookEvent::SessionEnd,
                vec!["other".to_owned()],
                session,
                json!({"reason": "other"}),
            )],
            _ => Vec::new(),
        }
    }

    fn round(&self, event: HookEvent, names: Vec<String>, session: &str, own: Value) -> Round {
        let mut input = Map::new();
        for (key, value) in [
            ("session_id", json!(session)),
            // There is no such file: the conversation is in a store.
            ("transcript_path", json!("")),
            ("cwd", json!(self.directory)),
            ("permission_mode", json!(self.with.permission_mode)),
            ("hook_event_name", json!(event.name())),
        ] {
            input.insert(key.to_owned(), value);
        }
        if let Value::Object(own) = own {
            input.extend(own);
        }
        Round {
            event,
            names,
            input: Value::Object(input),
        }
    }

    fn tool(&self, event: HookEvent, session: &str, item: &HookPayload) -> Round {
        let tool = item.input.get("tool").and_then(Value::as_str);
        let tool = tool.unwrap_or_default();
        let names = names(tool, &self.with.host.mcp_servers());
        let before = event == HookEvent::PreToolUse;
        let args = match before {
            true => item.output.get("args"),
            false => item.input.get("args"),
        };
        let args = to_theirs(tool, args.unwrap_or(&Value::Null), &self.directory);
        let mut own = json!({
            "tool_name": names.told,
            "tool_input": args,
            "tool_use_id": item.input.get("callID"),
        });
        if !before && let Some(fields) = own.as_object_mut() {
            fields.insert("tool_response".to_owned(), response(tool, &args, item));
        }
        self.round(event, names.all, session, own)
    }

    /// A prompt of the user's. What a subagent is told is none.
    fn prompt(&self, session: &str, item: &HookPayload) -> Vec<Round> {
        let about = self.with.host.session(session);
        if about.child {
            return Vec::new();
        }
        let mut rounds = Vec::new();
        if let Some(source) = self.begins(session, about.begun) {
            rounds.push(self.round(
                HookEvent::SessionStart,
                vec![source.to_owned()],
                session,
                json!({"source": source}),
            ));
        }
        if let Some(prompt) = prompt_of(&item.output) {
            rounds.push(self.round(
                HookEvent::UserPromptSubmit,
                Vec::new(),
                session,
                json!({"prompt": prompt}),
            ));
        }
        rounds
    }

    /// A question that a command has answered beforehand is told to nobody.
    fn question(&self, session: &str, item: &HookPayload) -> Vec<Round> {
        if call_of(&item.input).is_some_and(|call| self.allows(&call)) {
            return Vec::new();
        }
        let permission = item.input.get("permission").and_then(Value::as_str);
        let told = names(permission.unwrap_or_default(), &[]).told;
        vec![self.round(
            HookEvent::Notification,
            vec!["permission_prompt".to_owned()],
            session,
            json!({
                "message": format!("Outrigger needs your permission to use {told}"),
                "title": "Permission needed",
                "notification_type": "permission_prompt",
            }),
        )]
    }

    fn compaction(&self, session: &str) -> Round {
        self.compacted(session);
        let by_itself = self.with.host.session(session).compacts_by_itself;
        let trigger = if by_itself { "auto" } else { "manual" };
        self.round(
            HookEvent::PreCompact,
            vec![trigger.to_owned()],
            session,
            json!({"trigger": trigger, "custom_instructions": ""}),
        )
    }

    fn stop(&self, session: &str, item: &HookPayload) -> Round {
        let event = match self.with.host.session(session).child {
            true => HookEvent::SubagentStop,
            false => HookEvent::Stop,
        };
        let own = |key: &str| item.input.get(key).cloned().unwrap_or_default();
        let again = own("active") == Value::Bool(true);
        self.round(
            event,
            Vec::new(),
            session,
            json!({"stop_hook_active": again, "last_assistant_message": own("lastMessage")}),
        )
    }
}

/// What the user has typed, without what was put beside it. None when that is nothing.
fn prompt_of(output: &Value) -> Option<String> {
    let parts = output.get("parts").and_then(Value::as_array);
    let typed = parts.into_iter().flatten().filter(|part| {
        part.get("type") == Some(&json!("text")) && part.get("synthetic") != Some(&json!(true))
    });
    let texts = typed.filter_map(|part| part.get("text").and_then(Value::as_str));
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The result in a form in which commands find what they look for: ours, with the keys that theirs has beside.
fn response(tool: &str, args: &Value, item: &HookPayload) -> Value {
    let mut response = match &item.output {
        Value::Object(fields) => fields.clone(),
        other => return other.clone(),
    };
    let text = response.get("output").cloned();
    if let ("bash", Some(text)) = (tool, text) {
        response.insert("stdout".to_owned(), text);
        response.insert("stderr".to_owned(), json!(""));
        response.insert("interrupted".to_owned(), json!(false));
    }
    if let Some(path) = args.get("file_path") {
        response.insert("filePath".to_owned(), path.clone());
    }
    response.entry("success").or_insert(Value::Bool(true));
    Value::Object(response)
}
