//! OpenCode's own normalisation of what it reads, file by file: the merged document that a `config` hook gets has these
//! forms, so plugins rely on them.
//!
//! - `permission: "ask"` becomes `{"*": "ask"}`.
//! - An agent's `tools` become `permission` (which then has precedence), `maxSteps` becomes `steps`, keys that an agent
//!   does not have are also put into `options` (they go to the model's provider), and `options` and `permission` exist
//!   even if empty.
//! - `theme`, `keybinds` and `tui` belong to the terminal's own file and are removed.

use outrigger_schema::child;
use serde_json::{Map, Value};

use crate::opencode::permission::{SwitchedTool, from_tools};
use crate::origin::{Position, Positions, position_of};

/// Keys of an agent that are not options for the model. `order` is not known to OpenCode as such; plugins set it to
/// sort agents, and no provider takes it.
const AGENT_KEYS: &[&str] = &[
    "name",
    "model",
    "variant",
    "prompt",
    "description",
    "temperature",
    "top_p",
    "mode",
    "hidden",
    "color",
    "steps",
    "maxSteps",
    "options",
    "permission",
    "disable",
    "tools",
    "order",
];

/// Normalises one file's document.
pub(crate) fn file(value: &mut Value, positions: &mut Positions) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    for key in ["theme", "keybinds", "tui"] {
        map.shift_remove(key);
    }
    if let Some(permission) = map.get_mut("permission") {
        spread(permission);
    }
    for section in ["agent", "mode"] {
        if let Some(Value::Object(agents)) = map.get_mut(section) {
            for (name, entry) in agents.iter_mut() {
                if let Value::Object(entry) = entry {
                    agent(entry, &child(&format!("/{section}"), name), positions, true);
                }
            }
        }
    }
}

/// Converts `"ask"` to an object.
fn spread(permission: &mut Value) {
    if permission.is_string() {
        *permission = Value::Object(Map::from_iter([("*".to_owned(), permission.take())]));
    }
}

/// Normalises one agent. `unknown_to_options` is for files; a plugin is responsible for its own entries.
pub(crate) fn agent(
    entry: &mut Map<String, Value>,
    pointer: &str,
    positions: &mut Positions,
    unknown_to_options: bool,
) {
    if let Some(steps) = entry.get("maxSteps").cloned()
        && !entry.contains_key("steps")
    {
        place(
            positions,
            &child(pointer, "maxSteps"),
            &child(pointer, "steps"),
        );
        entry.insert("steps".into(), steps);
    }
    if unknown_to_options {
        let mut options = match entry.get("options") {
            Some(Value::Object(options)) => options.clone(),
            _ => Map::new(),
        };
        for (key, value) in entry
            .iter()
            .filter(|(key, _)| !AGENT_KEYS.contains(&key.as_str()))
        {
            place(
                positions,
                &child(pointer, key),
                &child(&child(pointer, "options"), key),
            );
            options.insert(key.clone(), value.clone());
        }
        entry.insert("options".into(), Value::Object(options));
    }
    let mut permission = Map::new();
    if let Some(Value::Object(tools)) = entry.get("tools") {
        for SwitchedTool {
            permission: name,
            action,
            tool,
        } in from_tools(tools)
        {
            place(
                positions,
                &child(&child(pointer, "tools"), &tool),
                &child(&child(pointer, "permission"), &name),
            );
            permission.insert(name, action);
        }
    }
    if let Some(own) = entry.get_mut("permission") {
        spread(own);
        if let Value::Object(own) = own {
            permission.extend(std::mem::take(own));
        }
    }
    entry.insert("permission".into(), Value::Object(permission));
}

/// Gives the derived value the position of its source, unless it is written itself.
fn place(positions: &mut Positions, source: &str, derived: &str) {
    let at: Position = position_of(positions, source);
    positions.entry(derived.into()).or_insert(at);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn as_opencode_does() {
        for (given, expected) in [
            (json!({}), json!({})),
            (
                json!({"$schema": "x", "theme": "t", "keybinds": {}, "tui": {}, "zork": 1}),
                json!({"$schema": "x", "zork": 1}),
            ),
            (
                json!({"permission": "allow"}),
                json!({"permission": {"*": "allow"}}),
            ),
            (
                json!({"agent": {"build": {"model": "m", "tools": {"bash": false, "foo": true}, "maxSteps": 4, "zork": 1}}}),
                json!({"agent": {"build": {"model": "m", "tools": {"bash": false, "foo": true}, "maxSteps": 4, "zork": 1,
                    "steps": 4, "options": {"zork": 1}, "permission": {"bash": "deny", "foo": "allow"}}}}),
            ),
            (
                json!({"agent": {"a": {"options": {"x": 1}, "tools": {"write": false, "bash": true}, "permission": {"edit": "ask"}, "order": 2}}}),
                json!({"agent": {"a": {"options": {"x": 1}, "tools": {"write": false, "bash": true}, "permission": {"edit": "ask", "bash": "allow"}, "order": 2}}}),
            ),
            (
                json!({"mode": {"a": {"permission": "deny"}}}),
                json!({"mode": {"a": {"permission": {"*": "deny"}, "options": {}}}}),
            ),
        ] {
            let mut value = given.clone();
            file(&mut value, &mut Positions::new());
            assert_eq!(value, expected, "{given}");
        }
    }
}
