//! Output of a command that has no effect.

use outrigger_config::claude_hooks::HookEvent;
use serde_json::Value;

/// Returns the parts of an answer without effect, as a message for the user: the command's author expects
/// them to have one.
pub(crate) fn ignored_output(event: HookEvent, name: &str, whole: &Value) -> Vec<String> {
    use HookEvent::{
        PermissionRequest, PostToolUse, PostToolUseFailure, PreCompact, PreToolUse, SessionStart,
        Stop, SubagentStart, SubagentStop, UserPromptSubmit,
    };
    let top: &[&str] = match event {
        PreToolUse | PostToolUse | PostToolUseFailure | UserPromptSubmit | PreCompact | Stop
        | SubagentStop => &["decision", "reason"],
        _ => &[],
    };
    let common = [
        "continue",
        "stopReason",
        "systemMessage",
        "suppressOutput",
        "hookSpecificOutput",
    ];
    let specific: &[&str] = match event {
        PreToolUse => &[
            "permissionDecision",
            "permissionDecisionReason",
            "updatedInput",
            "additionalContext",
        ],
        PostToolUse => &[
            "additionalContext",
            "updatedToolOutput",
            "updatedMCPToolOutput",
        ],
        PermissionRequest => &["decision"],
        UserPromptSubmit | SessionStart | SubagentStart | Stop | SubagentStop
        | PostToolUseFailure => &["additionalContext"],
        _ => &[],
    };
    let keys = |value: Option<&Value>| -> Vec<String> {
        let fields = value.and_then(Value::as_object).into_iter().flatten();
        let said = fields.filter(|(_, value)| !value.is_null());
        said.map(|(key, _)| key.clone()).collect()
    };
    let ignored = |key: &String| {
        format!(
            "`{name}` answers with `{key}`, which has no effect at {}",
            event.name()
        )
    };
    let mut all: Vec<String> = keys(Some(whole))
        .iter()
        .filter(|key| !common.contains(&key.as_str()) && !top.contains(&key.as_str()))
        .map(ignored)
        .collect();
    let hook = whole.get("hookSpecificOutput");
    let unknown = |key: &&String| *key != "hookEventName" && !specific.contains(&key.as_str());
    all.extend(keys(hook).iter().filter(unknown).map(ignored));
    let decision = hook.and_then(|hook| hook.get("decision"));
    if event == PermissionRequest {
        let known = |key: &&String| !matches!(key.as_str(), "behavior" | "message" | "interrupt");
        all.extend(keys(decision).iter().filter(known).map(ignored));
    }
    all
}
