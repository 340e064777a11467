//! Enabled providers are the user's choice, which others can only restrict.

use serde_json::Value;

/// Limits the lists of providers to the user's: those that these exclude stay excluded, whatever a project or a plugin sets.
/// Returns the changed keys.
pub fn narrow_providers(value: &mut Value, users: &Value) -> Vec<&'static str> {
    let mut changed = Vec::new();
    if let Some(off) = users.get("disabled_providers").and_then(Value::as_array) {
        let mut all = list(value, "disabled_providers").unwrap_or_default();
        let missing: Vec<Value> = off.iter().filter(|it| !all.contains(it)).cloned().collect();
        if !missing.is_empty() {
            all.extend(missing);
            changed.extend(set(value, "disabled_providers", all));
        }
    }
    if let Some(on) = users.get("enabled_providers").and_then(Value::as_array) {
        let mut all = list(value, "enabled_providers");
        let is_wider = all
            .as_ref()
            .is_none_or(|all| all.iter().any(|it| !on.contains(it)));
        if is_wider {
            let narrowed = all.get_or_insert_with(|| on.clone());
            narrowed.retain(|it| on.contains(it));
            changed.extend(set(value, "enabled_providers", std::mem::take(narrowed)));
        }
    }
    changed
}

fn list(value: &Value, key: &str) -> Option<Vec<Value>> {
    value.get(key)?.as_array().cloned()
}

fn set(value: &mut Value, key: &'static str, list: Vec<Value>) -> Option<&'static str> {
    let fields = value.as_object_mut()?;
    fields.insert(key.to_owned(), Value::Array(list));
    Some(key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_providers_only_get_narrower() {
        for (users, theirs, want, changed) in [
            (
                json!({}),
                json!({"disabled_providers": ["a"]}),
                json!({"disabled_providers": ["a"]}),
                vec![],
            ),
            (
                json!({"disabled_providers": ["a"]}),
                json!({"disabled_providers": []}),
                json!({"disabled_providers": ["a"]}),
                vec!["disabled_providers"],
            ),
            (
                json!({"disabled_providers": ["a"]}),
                json!({"disabled_providers": ["b", "a"]}),
                json!({"disabled_providers": ["b", "a"]}),
                vec![],
            ),
            (
                json!({"disabled_providers": ["a"]}),
                json!({"disabled_providers": "none"}),
                json!({"disabled_providers": ["a"]}),
                vec!["disabled_providers"],
            ),
            (
                json!({"enabled_providers": ["a", "b"]}),
                json!({"enabled_providers": ["b", "c"]}),
                json!({"enabled_providers": ["b"]}),
                vec!["enabled_providers"],
            ),
            (
                json!({"enabled_providers": ["a"]}),
                json!({}),
                json!({"enabled_providers": ["a"]}),
                vec!["enabled_providers"],
            ),
            (
                json!({}),
                json!({"enabled_providers": ["c"]}),
                json!({"enabled_providers": ["c"]}),
                vec![],
            ),
        ] {
            let mut value = theirs.clone();
            assert_eq!(narrow_providers(&mut value, &users), changed, "{theirs}");
            assert_eq!(value, want, "{theirs}");
        }
    }
}
