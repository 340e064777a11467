//! Permission rules that can never match: reported with file and line, since a deny that matches nothing looks like one that
//! does.

use outrigger_protocol::permission_names::{DOOM_LOOP, EXTERNAL_DIRECTORY};
use std::collections::BTreeMap;

use outrigger_schema::child;
use serde_json::{Map, Value};
use strsim::levenshtein;

use crate::origin::nearest;
use crate::{ConfigProblem, Origin};

/// Permissions of this program; tools of plugins and MCP servers have others.
const KNOWN: [&str; 20] = [
    "bash",
    "read",
    "edit",
    "glob",
    "grep",
    "list",
    "webfetch",
    "websearch",
    "codesearch",
    "task",
    "skill",
    "todowrite",
    "todoread",
    "lsp",
    "question",
    EXTERNAL_DIRECTORY,
    DOOM_LOOP,
    "python",
    "table",
    "plan_enter",
];
/// Tools that use the permission of another.
const AS_EDIT: [&str; 4] = ["write", "patch", "multiedit", "apply_patch"];

/// Returns problems with the rules of a merged document.
pub(crate) fn problems(document: &Value, origins: &BTreeMap<String, Origin>) -> Vec<ConfigProblem> {
    let mut places = vec![("/permission".to_owned(), document.get("permission"))];
    let agents = document.get("agent").and_then(Value::as_object);
    for (name, agent) in agents.into_iter().flatten() {
        let pointer = child(&child("/agent", name), "permission");
        places.push((pointer, agent.get("permission")));
    }
    let mut found = Vec::new();
    for (pointer, permission) in places {
        let Some(Value::Object(permission)) = permission else {
            continue;
        };
        for (name, rule) in permission {
            let at = child(&pointer, name);
            let mut tell = |pointer: &str, message: String| {
                found.push(ConfigProblem {
                    file: nearest(origins, pointer).to_string(),
                    pointer: Some(pointer.to_owned()),
                    message,
                });
            };
            if let Some(why) = of_name(name) {
                tell(&at, why);
            }
            let Value::Object(patterns) = rule else {
                continue;
            };
            for (at_index, (pattern, action)) in patterns.iter().enumerate() {
                let why = of_pattern(name, pattern, action)
                    .or_else(|| overruled(patterns, at_index, action));
                if let Some(why) = why {
                    tell(&child(&at, pattern), why);
                }
            }
        }
    }
    found
}

/// Returns why a name is not a permission, if it looks like a mistake.
fn of_name(name: &str) -> Option<String> {
    if AS_EDIT.contains(&name) {
        return Some(format!(
            "this rule never counts: `{name}` asks as `edit`; write it under `edit`"
        ));
    }
    if is_none_of_ours(name) {
        return None;
    }
    let lower = name.to_lowercase();
    let near = KNOWN.iter().find(|known| {
        let most = if known.len() > 5 { 2 } else { 1 };
        levenshtein(&lower, known) <= most
            || is_meant(&lower, known)
            || known.len() > 8 && lower.starts_with(&known[..8])
    })?;
    Some(format!(
        "this rule never counts unless a plugin has a tool of that name: did you mean `{near}`?"
    ))
}

/// Returns whether the name may belong to a plugin or server, so that nothing is reported.
fn is_none_of_ours(name: &str) -> bool {
    name.contains('*') || KNOWN.contains(&name) || name == "plan_exit"
}

/// Returns the permission that a misspelt name certainly means. Another tool could be called `lint` or `tasks`, but none is
/// called `edti`.
pub(crate) fn misspelt(name: &str) -> Option<&'static str> {
    if is_none_of_ours(name) {
        return None;
    }
    let lower = name.to_lowercase();
    let is_slip =
        |known: &str| known.len() > 5 && !lower.ends_with('s') && levenshtein(&lower, known) == 1;
    let mut all = KNOWN.into_iter();
    all.find(|known| is_meant(&lower, known) || is_slip(known))
}

/// Returns whether a name has the same letters as a known one, or its beginning.
fn is_meant(lower: &str, known: &str) -> bool {
    let plain = |word: &str| letters(&word.replace(['_', '-'], ""));
    plain(lower) == plain(known) || known.len() > 12 && lower.starts_with(&known[..12])
}

/// Returns why a pattern matches nothing.
fn of_pattern(name: &str, pattern: &str, action: &Value) -> Option<String> {
    let never = |why: &str| Some(format!("this rule matches nothing: {why}"));
    if pattern.is_empty() {
        return never("its pattern is empty; `*` is everything");
    }
    if pattern.trim() != pattern {
        return never("its pattern begins or ends with white space");
    }
    let is_address = |text: &str| text.starts_with("http") || text.starts_with(['*', '?']);
    match name {
        "read" | "edit" | EXTERNAL_DIRECTORY => of_path(name, pattern, action),
        "webfetch" if !is_address(pattern) => {
            never("addresses begin with http:// or https://; `*://HOST/*` is a host")
        }
        _ => None,
    }
}

fn of_path(name: &str, pattern: &str, action: &Value) -> Option<String> {
    let never = |why: &str| Some(format!("this rule matches nothing: {why}"));
    let braces = pattern.find('{').zip(pattern.find('}'));
    if pattern.starts_with('!') {
        return never("`!` is no negation here; write a later rule with another action");
    }
    if pattern.starts_with("file:") {
        return never("patterns are paths, not addresses");
    }
    if pattern.contains('\\') {
        return never("folders are separated by `/`");
    }
    if pattern.starts_with('$') {
        return never("of variables only `$HOME` at the beginning is replaced");
    }
    if braces.is_some_and(|(open, close)| open < close) {
        return never("`{a,b}` is no choice here; write one rule for each");
    }
    if pattern.contains('[') && pattern.contains(']') {
        return never("`[ab]` is no choice of characters here; write one rule for each");
    }
    let is_allow = action == "allow";
    let is_anchored = pattern.starts_with(['/', '~', '*', '?', '$']);
    if name == EXTERNAL_DIRECTORY && !is_anchored {
        return never("folders outside of the project are named from `/` or `~/`, or by `*`");
    }
    if name == EXTERNAL_DIRECTORY && is_allow && !pattern.ends_with('*') {
        return never("a folder is allowed as `FOLDER/*`");
    }
    if is_allow && pattern.ends_with('/') {
        return never("what is in a folder is allowed as `FOLDER/*`");
    }
    None
}

/// Returns whether a later general rule with another action overrides it.
fn overruled(patterns: &Map<String, Value>, at: usize, action: &Value) -> Option<String> {
    let everything =
        |pattern: &str| pattern.contains('*') && pattern.chars().all(|it| matches!(it, '*' | '/'));
    let mut later = patterns.iter().skip(at + 1);
    let (pattern, _) = later.find(|(pattern, other)| everything(pattern) && *other != action)?;
    Some(format!(
        "this rule never counts: the last that matches does, and `{pattern}` stands behind it; put `{pattern}` first"
    ))
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_that_never_count_are_reported() {
        for (permission, want) in [
            (
                json!({"read": {"*": "allow", ".env": "deny", "/a/*": "deny", "~/x": "deny"}}),
                "",
            ),
            (json!({"read": {"": "deny"}}), "its pattern is empty"),
            (json!({"read": {" .env": "deny"}}), "white space"),
            (json!({"raed": "deny"}), "did you mean `read`"),
            (
                json!({"external_directories": "deny"}),
                "did you mean `external_directory`",
            ),
            (json!({"web_fetch": "deny"}), "did you mean `webfetch`"),
            (json!({"write": {"x": "deny"}}), "`write` asks as `edit`"),
            (json!({"mcp_tool": "deny", "my*": "ask"}), ""),
            (
                json!({"read": {"*.{env,pem}": "deny"}}),
                "`{a,b}` is no choice",
            ),
            (
                json!({"edit": {"[ab].txt": "deny"}}),
                "no choice of characters",
            ),
            (json!({"edit": {"!x": "deny"}}), "no negation"),
            (json!({"edit": {"C:\\x": "deny"}}), "separated by `/`"),
            (json!({"read": {"$XDG_DATA/x": "deny"}}), "only `$HOME`"),
            (json!({"read": {"docs/": "allow"}}), "`FOLDER/*`"),
            (
                json!({"external_directory": {"keys/*": "deny"}}),
                "from `/` or `~/`",
            ),
            (
                json!({"external_directory": {"~/notes": "allow"}}),
                "`FOLDER/*`",
            ),
            (
                json!({"external_directory": {"~/.ssh": "deny", "*/.ssh/*": "deny"}}),
                "",
            ),
            (
                json!({"webfetch": {"example.com": "deny"}}),
                "addresses begin",
            ),
            (json!({"webfetch": {"*://example.com/*": "deny"}}), ""),
            (
                json!({"read": {"*.env": "deny", "*": "allow"}}),
                "put `*` first",
            ),
            (json!({"bash": {"git *": "allow", "*": "allow"}}), ""),
            (json!("deny"), ""),
        ] {
            let found = problems(&json!({ "permission": permission }), &BTreeMap::new());
            let said: Vec<&str> = found.iter().map(|it| it.message.as_str()).collect();
            match want {
                "" => assert!(said.is_empty(), "{permission}: {said:?}"),
                want => {
                    assert_eq!(said.len(), 1, "{permission}: {said:?}");
                    assert!(said[0].contains(want), "{permission}: {said:?}");
                }
            }
        }
        let agent = json!({"agent": {"a/b": {"permission": {"read": {"": "deny"}}}}});
        let found = problems(&agent, &BTreeMap::new());
        assert_eq!(
            found[0].pointer.as_deref(),
            Some("/agent/a~1b/permission/read/")
        );
    }
}
