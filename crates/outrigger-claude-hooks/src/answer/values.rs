//! Invalid values in an answer.

use outrigger_config::claude_hooks::HookEvent;
use serde_json::Value;

/// Values of `decision` and `permissionDecision` at `PreToolUse`.
const CALL: &[&str] = &["allow", "approve", "ask", "defer", "deny", "block"];
/// Values of `decision` at the other events.
const OBJECTION: &[&str] = &["block", "approve", "allow"];
/// Values of `decision.behavior` at `PermissionRequest`.
const PERMISSION: &[&str] = &["allow", "deny", "ask"];

/// Returns the first deciding key with an invalid value: another word, or another type.
pub(super) fn unknown(event: HookEvent, name: &str, whole: &Value) -> Option<String> {
    let specific = whole.get("hookSpecificOutput").filter(|it| !it.is_null());
    let said = |key: &str, value: &Value, want: &str| {
        format!("`{name}` answers with {value} as `{key}`, which has to be {want}")
    };
    let wrong = |key: &str, value: Option<&Value>, words: &[&str]| {
        let value = value.filter(|it| !it.is_null())?;
        let known = value.as_str().is_some_and(|word| words.contains(&word));
        let want = || words.join(", ");
        (!known).then(|| said(key, value, &format!("one of {}", want())))
    };
    if let Some(value) = whole
        .get("continue")
        .filter(|it| !it.is_null() && !it.is_boolean())
    {
        return Some(said("continue", value, "true or false"));
    }
    if let Some(value) = specific.filter(|it| !it.is_object()) {
        return Some(said("hookSpecificOutput", value, "an object"));
    }
    let of_specific = |key: &str| specific.and_then(|it| it.get(key));
    match event {
        HookEvent::PreToolUse => wrong(
            "permissionDecision",
            of_specific("permissionDecision"),
            CALL,
        )
        .or_else(|| wrong("decision", whole.get("decision"), CALL)),
        HookEvent::PermissionRequest => {
            let decision = of_specific("decision").filter(|it| !it.is_null())?;
            if !decision.is_object() {
                return Some(said("decision", decision, "an object"));
            }
            wrong("behavior", decision.get("behavior"), PERMISSION)
        }
        HookEvent::UserPromptSubmit
        | HookEvent::PreCompact
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::Stop
        | HookEvent::SubagentStop => wrong("decision", whole.get("decision"), OBJECTION),
        _ => None,
    }
}
