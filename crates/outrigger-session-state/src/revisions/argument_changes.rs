//! What a plugin changed of a call's arguments, for the user who approves the call.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of characters shown of an argument's old value.
const MAX_SHOWN: usize = 200;

/// Describes the changes of the arguments for the user who approves the call; long values are truncated.
#[must_use]
pub fn changes(before: Option<&Value>, after: Option<&Value>) -> String {
    let shown = |value: Option<&Value>| {
        let text = match value {
            None => return "nothing".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
            None => format!("`{text}`"),
        }
    };
    let field = |value: Option<&Value>, key: &str| value.and_then(|it| it.get(key)).cloned();
    let keys = [before, after].into_iter().flatten();
    let keys: BTreeSet<&String> = keys
        .filter_map(Value::as_object)
        .flat_map(|it| it.keys())
        .collect();
    let changes: Vec<String> = keys
        .into_iter()
        .filter_map(|key| {
            let (old, new) = (field(before, key), field(after, key));
            (old != new).then(|| format!("`{key}` was {}", shown(old.as_ref())))
        })
        .collect();
    if changes.is_empty() {
        format!("its arguments were {}", shown(before))
    } else {
        changes.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_changed_is_shown_with_its_old_value() {
        let long = "x".repeat(MAX_SHOWN + 1);
        let cut = format!("`a` was `{}…`", "x".repeat(MAX_SHOWN));
        for (before, after, want) in [
            (
                json!({"a": "ls", "b": 1}),
                json!({"a": "id", "b": 1}),
                "`a` was `ls`",
            ),
            (
                json!({"a": 1}),
                json!({"a": 2, "b": 3}),
                "`a` was `1`, `b` was nothing",
            ),
            (json!({"a": [1]}), json!({}), "`a` was `[1]`"),
            (json!({"a": 1}), json!("text"), "`a` was `1`"),
            (json!("one"), json!("two"), "its arguments were `one`"),
            (json!({"a": long}), json!({"a": "y"}), cut.as_str()),
        ] {
            assert_eq!(changes(Some(&before), Some(&after)), want);
        }
    }
}
