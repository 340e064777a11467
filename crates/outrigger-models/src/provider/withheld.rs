//! The user's keys of a provider for which a plugin answers, or whose address a plugin named, without the grant for it: they are
//! not put into requests that the plugin gets to read.

use outrigger_protocol::Object;
use serde_json::Value;

use crate::secret::is_secret_name;

/// The plugin that answers for a provider, or that named where its requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// Its identifier.
    pub plugin: String,
    /// The NAME of `[plugins.NAME]` that stands for it and no other plugin. Credentials that its logins stored go by it.
    pub name: Option<String>,
    /// The user lets it have their keys.
    pub has_keys: bool,
}

/// An entry of `provider` without the secrets that it has in common with the entry of the user's. Headers may be secret whatever
/// they are called.
pub(crate) fn without_secrets_of(users: &Value, entry: &Value) -> Value {
    without(users, entry, false)
}

fn without(users: &Value, entry: &Value, are_headers: bool) -> Value {
    let (Value::Object(users), Value::Object(fields)) = (users, entry) else {
        return entry.clone();
    };
    let mut left = Object::new();
    for (key, value) in fields {
        let Some(known) = users.get(key) else {
            left.insert(key.clone(), value.clone());
            continue;
        };
        let may_be = are_headers || is_secret_name(key);
        if known != value || known.is_object() || !may_be {
            left.insert(key.clone(), without(known, value, key == "headers"));
        }
    }
    Value::Object(left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_plugin_wrote_itself_stays() {
        let users = json!({
            "npm": "x", "options": { "apiKey": "k", "baseURL": "u", "headers": { "Authorization": "Bearer k", "x-app": "a" } },
            "models": { "m": { "headers": { "x-api-key": "k" }, "limit": { "output": 1 } } },
        });
        assert_eq!(
            without_secrets_of(&users, &users),
            json!({
                "npm": "x", "options": { "baseURL": "u", "headers": {} },
                "models": { "m": { "headers": {}, "limit": { "output": 1 } } },
            })
        );
        let own = json!({ "options": { "apiKey": "own", "token": "t" }, "models": {} });
        assert_eq!(without_secrets_of(&users, &own), own);
        assert_eq!(without_secrets_of(&json!(null), &own), own);
    }
}
