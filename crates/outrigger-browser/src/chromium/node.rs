//! Converts elements of the accessibility tree.

use outrigger_browser_core::field::FieldKind;
use outrigger_browser_core::snapshot::{Key, Node};
use serde_json::Value;

use super::look::Details;

/// Roles of interactive elements.
const ACTIVE: [&str; 21] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "radio",
    "switch",
    "slider",
    "spinbutton",
    "option",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "tab",
    "treeitem",
    "listbox",
    "date",
    "inputtime",
    "colorwell",
    "canvas",
];

/// Converts an element of the accessibility tree.
pub(super) fn made(
    node: &Value,
    role: &str,
    depth: usize,
    document: &str,
    details: &Details,
) -> Node {
    let id = node["backendDOMNodeId"].as_i64().unwrap_or_default();
    let is_ignored = node["ignored"].as_bool().unwrap_or_default();
    let role = match role {
        _ if is_ignored => "none".to_owned(),
        "StaticText" | "LineBreak" => "text".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    let name = node["name"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let hint = details.hints.get(&id).filter(|_| name.is_empty());
    let (states, is_focusable) = states(node);
    let field = details.fields.get(&id).copied();
    let value = match &node["value"]["value"] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let is_active = ACTIVE.contains(&role.as_str())
        || details.clickable.contains(&id)
        || (is_focusable && role != "rootwebarea");
    Node {
        depth,
        key: Key {
            document: document.to_owned(),
            node: id,
        },
        hint: hint.cloned().unwrap_or_default(),
        actionable: is_active && role != "text",
        role,
        name,
        // Bullets reveal the length of a password.
        value: value.filter(|_| field != Some(FieldKind::Password)),
        states,
        field,
    }
}

/// Returns the states that are shown, and whether the element is focusable.
fn states(node: &Value) -> (Vec<String>, bool) {
    let (mut states, mut is_focusable) = (Vec::new(), false);
    for property in node["properties"].as_array().into_iter().flatten() {
        let value = &property["value"]["value"];
        let is_true = value == &Value::Bool(true) || value == "true";
        let state = match property["name"].as_str().unwrap_or_default() {
            "focusable" => {
                is_focusable |= is_true;
                continue;
            }
            "expanded" => {
                if is_true {
                    "expanded"
                } else {
                    "collapsed"
                }
            }
            "checked" | "pressed" if value == "mixed" => "mixed",
            "invalid" if value != "false" => "invalid",
            name @ ("checked" | "disabled" | "focused" | "modal" | "multiline" | "pressed"
            | "readonly" | "required" | "selected" | "busy")
                if is_true =>
            {
                name
            }
            _ => continue,
        };
        states.push(state.to_owned());
    }
    (states, is_focusable)
}
