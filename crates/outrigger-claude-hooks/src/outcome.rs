//! Effects of commands' answers at a point.

use outrigger_config::claude_hooks::HookEvent;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::hook::{Block, Change, HookFailure, HookOutcome, Key};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use crate::answer::{Answer, Permission};
use crate::input::result_of;
use crate::names::to_ours;
use crate::result;
use crate::state::{Commands, call_of};

/// Applies an answer to the payload as the handlers before left it. The chain gets a failure only if nothing else was
/// answered, or if a failure must refuse.
#[must_use]
pub fn outcome(
    commands: &Commands,
    point: HookPoint,
    answer: &Answer,
    item: &HookPayload,
    fail_closed: bool,
) -> HookOutcome {
    if point == HookPoint::ToolBeforeCall {
        remark(commands, answer, item);
    }
    if let Some(block) = refusal(point, answer) {
        return HookOutcome::Block(block);
    }
    let changes = changes(commands, point, answer, item);
    let failed = !answer.failures.is_empty() && (changes.is_empty() || fail_closed);
    match (failed, answer.timed_out) {
        (true, Some(ms)) => HookFailure::TimedOut { ms }.into(),
        (true, None) => HookFailure::Lost {
            message: answer.failures.join("; "),
        }
        .into(),
        (false, _) => HookOutcome::patch(vec![changes]),
    }
}

fn refusal(point: HookPoint, answer: &Answer) -> Option<Block> {
    if !matches!(
        point,
        HookPoint::ToolBeforeCall | HookPoint::RunBeforeStart | HookPoint::CompactionBeforeStart
    ) {
        return None;
    }
    let (code, message) = match (&answer.stop, answer.refuses) {
        (Some(why), _) => ("hook.stopped", why.clone()),
        (None, true) => ("hook.denied", answer.reason.clone().unwrap_or_default()),
        (None, false) => return None,
    };
    Some(Block {
        code: code.to_owned(),
        message,
        details: Value::Null,
        plugin: None,
    })
}

fn changes(
    commands: &Commands,
    point: HookPoint,
    answer: &Answer,
    item: &HookPayload,
) -> Vec<Change> {
    match point {
        HookPoint::ToolBeforeCall => before_call(commands, answer, item),
        HookPoint::ToolBeforePermission => permission(commands, answer, item),
        HookPoint::ToolAfterResult => after_result(commands, answer, item),
        HookPoint::ToolOnError => on_error(commands, answer, item),
        HookPoint::RunBeforeStart => prompt(commands, answer, item),
        HookPoint::AgentEndBeforeStop => before_stop(commands, answer, item),
        _ => Vec::new(),
    }
}

fn set(path: Vec<Key>, value: Value) -> Change {
    Change {
        path,
        value: Some(value),
    }
}

fn named(name: &str) -> Key {
    Key::Name(name.to_owned())
}

/// Stores output from before a call: it is read after its result, or after the error of a refused call.
fn remark(commands: &Commands, answer: &Answer, item: &HookPayload) {
    if let Some(call) = call_of(&item.input) {
        for text in &answer.context {
            commands.remark(call.clone(), format!("[PreToolUse hook] {text}"));
        }
    }
}

/// Returns what the model reads after a result or an error: output from before the call, from async commands, and about the
/// result itself.
fn said(commands: &Commands, point: HookPoint, answer: &Answer, item: &HookPayload) -> Vec<String> {
    let event = result_of(point, item).map_or("", HookEvent::name);
    let reason = answer
        .reason
        .iter()
        .filter(|_| answer.refuses)
        .chain(&answer.context)
        .map(|text| format!("[{event} hook] {text}"));
    let before = call_of(&item.input).map(|call| commands.take_remarks(&call));
    let texts = async_texts(commands, item);
    before
        .into_iter()
        .flatten()
        .chain(texts)
        .chain(reason)
        .collect()
}

fn async_texts(commands: &Commands, item: &HookPayload) -> Vec<String> {
    let session = item.input.get("sessionID").and_then(Value::as_str);
    session.map_or_else(Vec::new, |session| commands.async_hooks.take(session))
}

/// Applies an answer to an error. A failure stays a failure; comments follow its message.
fn on_error(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    let before = item.output.get("context").and_then(Value::as_array);
    said(commands, HookPoint::ToolOnError, answer, item)
        .into_iter()
        .zip(before.map_or(0, Vec::len)..)
        .map(|(text, at)| set(vec![named("context"), Key::Index(at)], json!(text)))
        .collect()
}

fn before_call(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    if let Some(call) = call_of(&item.input) {
        match answer.permission {
            Some(Permission::Allow) => commands.allow(call.clone()),
            Some(Permission::Ask) => {
                let why = answer.reason.clone();
                commands.ask(
                    call.clone(),
                    why.unwrap_or_else(|| "a hook asks".to_owned()),
                );
            }
            _ => {}
        }
    }
    let tool = item.input.get("tool").and_then(Value::as_str);
    answer
        .updated
        .as_ref()
        .map(|args| to_ours(tool.unwrap_or_default(), args))
        .map(|args| set(vec![named("args")], args))
        .into_iter()
        .collect()
}

/// Answers a permission question. Commands' answers to the question itself come first. Otherwise a call that a command has
/// allowed is approved, unless the question was answered already, or a user rule requires asking.
fn permission(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    let status = |status: &str| vec![set(vec![named("status")], json!(status))];
    if answer.permission == Some(Permission::Deny) {
        if let (Some(call), Some(why)) = (call_of(&item.input), &answer.reason) {
            commands.remark(call, format!("[PermissionRequest hook] {why}"));
        }
        return status("deny");
    }
    if item.output.get("status") != Some(&json!("ask")) {
        return Vec::new();
    }
    let question = item.input.get("id").and_then(Value::as_str);
    if question.is_some_and(|id| commands.with.host.rule_asks(id)) {
        return Vec::new();
    }
    let allowed = answer.permission == Some(Permission::Allow)
        || call_of(&item.input).is_some_and(|call| commands.allows(&call));
    if allowed { status("allow") } else { Vec::new() }
}

/// Returns what the model reads: the result or its replacement, and comments on it. The call has been made, so nothing of it
/// is undone.
fn after_result(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut output = item.output.clone();
    if let Some(instead) = &answer.replaced {
        for (key, value) in result::replaced(&output, instead) {
            if let Some(fields) = output.as_object_mut() {
                fields.insert(key.clone(), value.clone());
            }
            changes.push(set(vec![Key::Name(key)], value));
        }
    }
    let said = said(commands, HookPoint::ToolAfterResult, answer, item);
    if said.is_empty() {
        return changes;
    }
    let said = said.join("\n\n");
    let change = match (output.get("output"), output.get("content")) {
        (Some(Value::String(text)), _) => {
            set(vec![named("output")], json!(format!("{text}\n\n{said}")))
        }
        (_, Some(Value::Array(blocks))) => set(
            vec![named("content"), Key::Index(blocks.len())],
            json!({"type": "text", "text": said}),
        ),
        _ => set(vec![named("output")], json!(said)),
    };
    changes.push(change);
    changes
}

/// Adds context next to what the user has typed, as a text of the program.
fn prompt(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    let parts = item.output.get("parts").and_then(Value::as_array);
    let count = parts.map_or(0, Vec::len);
    async_texts(commands, item)
        .into_iter()
        .chain(answer.context.clone())
        .zip(count..)
        .map(|(text, at)| {
            let part = json!({"type": "text", "text": text, "synthetic": true});
            set(vec![named("parts"), Key::Index(at)], part)
        })
        .collect()
}

/// Continues the turn with the reason and with context, which is equivalent. Output of several files is joined, and output of
/// async commands added.
fn before_stop(commands: &Commands, answer: &Answer, item: &HookPayload) -> Vec<Change> {
    // The turn ends: waiting output is read later.
    if answer.stop.is_some() {
        return Vec::new();
    }
    let session = item.input.get("sessionID").and_then(Value::as_str);
    let texts = session.map_or_else(Vec::new, |session| {
        commands.async_hooks.take_waking(session)
    });
    let before = item.output.get("continue").and_then(Value::as_str);
    let before = before.filter(|before| !before.is_empty());
    let reason = answer.reason.iter().filter(|_| answer.refuses);
    let said: Vec<&str> = before
        .into_iter()
        .chain(
            reason
                .chain(&answer.context)
                .chain(&texts)
                .map(String::as_str),
        )
        .collect();
    if said.len() == usize::from(before.is_some()) {
        return Vec::new();
    }
    vec![set(vec![named("continue")], json!(said.join("\n\n")))]
}

impl Commands {
    /// Resets state when the call of a tool hook ends or starts: what was allowed for an earlier one of its name does not
    /// apply.
    pub fn call_changes(&self, point: HookPoint, item: &HookPayload) {
        if matches!(
            point,
            HookPoint::ToolBeforeCall | HookPoint::ToolAfterResult | HookPoint::ToolOnError
        ) && let Some(call) = call_of(&item.input)
        {
            self.forget(&call);
        }
    }
}
