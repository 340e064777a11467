//! Permission rules of the configuration, converted to the one list that the kernel evaluates.

use std::path::Path;

use outrigger_protocol::permission::{Action, Rule};
use serde_json::{Map, Value};

/// Returns the rules of a `permission` value, in its order; the last match decides, as in OpenCode.
///
/// Forms: `"deny"` (everything), `{"bash": "deny"}`, `{"bash": {"git *": "allow", "*": "ask"}}`. In a pattern, `~/`
/// and `$HOME` at the start stand for the home folder. Values in other forms are skipped; [`crate::load`] and
/// [`crate::OpenCodeConfig::from_value`] have reported them before.
pub fn rules(permission: &Value, home: &Path) -> Vec<Rule> {
    let mut out = Vec::new();
    match permission {
        Value::String(_) => push(&mut out, "*", "*".into(), permission),
        Value::Object(map) => {
            for (name, rule) in map {
                match rule {
                    Value::Object(patterns) => {
                        for (pattern, action) in patterns {
                            push(&mut out, name, expand_home(pattern, home), action);
                        }
                    }
                    _ => push(&mut out, name, "*".into(), rule),
                }
            }
        }
        _ => {}
    }
    out
}

fn push(out: &mut Vec<Rule>, permission: &str, pattern: String, action: &Value) {
    if let Some(action) = action.as_str().and_then(self::action) {
        out.push(Rule {
            permission: permission.into(),
            pattern,
            action,
        });
    }
}

/// Parses the name of an action.
pub fn action(word: &str) -> Option<Action> {
    match word {
        "allow" => Some(Action::Allow),
        "ask" => Some(Action::Ask),
        "deny" => Some(Action::Deny),
        _ => None,
    }
}

fn expand_home(pattern: &str, home: &Path) -> String {
    let rest = match pattern {
        "~" => Some(""),
        _ if pattern.starts_with("~/") => pattern.strip_prefix('~'),
        _ => pattern.strip_prefix("$HOME"),
    };
    rest.map_or_else(
        || pattern.to_owned(),
        |rest| format!("{}{rest}", home.display()),
    )
}

/// Returns the permission for a key of `tools`: all that change files are `edit`, as in OpenCode.
pub(crate) fn of_tool(tool: &str) -> &str {
    match tool {
        "write" | "edit" | "patch" => "edit",
        other => other,
    }
}

/// An entry of `tools: {name: bool}` as one of `permission`.
pub(crate) struct SwitchedTool {
    pub(crate) permission: String,
    /// `allow` or `deny`.
    pub(crate) action: Value,
    /// The key of `tools`.
    pub(crate) tool: String,
}

/// Returns `tools: {name: bool}` as entries of `permission`.
pub(crate) fn from_tools(tools: &Map<String, Value>) -> Vec<SwitchedTool> {
    let mut out: Vec<SwitchedTool> = Vec::new();
    for (tool, enabled) in tools {
        let Some(enabled) = enabled.as_bool() else {
            continue;
        };
        let entry = SwitchedTool {
            permission: of_tool(tool).to_owned(),
            action: Value::from(if enabled { "allow" } else { "deny" }),
            tool: tool.clone(),
        };
        match out.iter_mut().find(|it| it.permission == entry.permission) {
            Some(existing) => *existing = entry,
            None => out.push(entry),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn show(permission: Value) -> String {
        let rules = rules(&permission, Path::new("/home/u"));
        let shown: Vec<String> = rules
            .iter()
            .map(|r| format!("{} {} {:?}", r.permission, r.pattern, r.action).to_lowercase())
            .collect();
        shown.join("; ")
    }

    #[test]
    fn forms() {
        for (permission, expected) in [
            (json!("allow"), "* * allow"),
            (json!({}), ""),
            (json!(null), ""),
            (json!({"bash": "deny"}), "bash * deny"),
            (
                json!({"bash": {"git *": "allow", "*": "ask"}}),
                "bash git * allow; bash * ask",
            ),
            (
                json!({"*": "ask", "read": {"~/x": "deny", "$HOME/y": "deny", "~": "ask", "~z": "ask"}}),
                "* * ask; read /home/u/x deny; read /home/u/y deny; read /home/u ask; read ~z ask",
            ),
            (
                json!({"bash": "perhaps", "edit": {"*": 1}, "x": "ask"}),
                "x * ask",
            ),
        ] {
            assert_eq!(show(permission.clone()), expected, "{permission}");
        }
    }

    #[test]
    fn tools_become_permissions() {
        let tools = json!({"bash": false, "write": false, "mine": true, "edit": true, "x": 1});
        let permissions: Map<String, Value> = from_tools(tools.as_object().unwrap())
            .into_iter()
            .map(|it| (it.permission, it.action))
            .collect();
        assert_eq!(
            Value::Object(permissions),
            json!({"bash": "deny", "edit": "allow", "mine": "allow"})
        );
    }
}
