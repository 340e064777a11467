//! Secrets that must not be recorded: keys of the configuration, of the environment, and stored ones.

use std::collections::BTreeMap;

use outrigger_config::Loaded;
use outrigger_protocol::keys::is_secret_in_texts;
use outrigger_store::{Retention, Store};
use serde_json::Value;

/// Sets the size of the audit and the secrets that must not be recorded: keys of the configuration, of the
/// environment, and stored ones.
pub fn prepare(store: &Store, config: &Loaded, env: &BTreeMap<String, String>) {
    let audit = &config.settings.audit;
    let retention = Retention {
        records: audit.keep_records,
        days: audit.keep_days,
    };
    if let Err(error) = store.keep_audit(retention) {
        tracing::warn!("[audit] {error}");
    }
    let mut secrets = Vec::new();
    differing("", &config.value, &config.redacted(), &mut secrets);
    secrets.extend(config.secrets().iter().cloned());
    store.redactor().hide(secrets);
    store.redactor().hide_environment(env);
}

/// Returns a function to call with each credential that is read or stored: its texts are kept out of the audit
/// from then on.
pub fn credential_watcher(store: &Store) -> impl Fn(&Value) + Send + Sync + 'static {
    let redactor = store.redactor().clone();
    move |credential| {
        let mut secrets = Vec::new();
        texts(credential, &mut secrets);
        // It also contains words such as `oauth` or a date; a key is longer.
        secrets.retain(|text| text.len() >= 16);
        redactor.hide(secrets);
    }
}

/// Returns a function that removes from a value, under the name that it has, what is kept out of the audit.
pub fn redact(store: &Store) -> impl Fn(&str, &mut Value) + Send + Sync + 'static {
    let redactor = store.redactor().clone();
    move |name, value| redactor.clean_value(name, value)
}

fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, out)),
        _ => {}
    }
}

/// Collects the texts of `value` that differ in `shown` and are secrets anywhere. Shown without its values are also the variables and
/// headers of servers, whose names and values may be ordinary words.
fn differing(name: &str, value: &Value, shown: &Value, out: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                differing(key, value, b.get(key).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            // An argument that is hidden follows the name of a secret.
            let name = if name == "command" { "secret" } else { name };
            for (value, shown) in a.iter().zip(b) {
                differing(name, value, shown, out);
            }
        }
        (Value::String(text), shown) if value != shown => {
            // Of a URL with a password, the password is shown by no other text.
            let is_part = shown.as_str().is_some_and(|it| it.len() > text.len() / 2);
            let last = text.rsplit_once(' ').map(|(_, last)| last);
            let words = [Some(text.as_str()), last].into_iter().flatten();
            let is_secret =
                |it: &&str| is_part && it.contains("://") || is_secret_in_texts(name, it);
            out.extend(words.filter(is_secret).map(str::to_owned));
        }
        (a, b) if a != b && !a.is_string() => {
            let mut found = Vec::new();
            texts(a, &mut found);
            found.retain(|it| is_secret_in_texts(name, it));
            out.extend(found);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is hidden in the configuration need not be a secret anywhere else.
    #[test]
    fn variables_of_servers_are_secrets_by_their_names_and_values() {
        let value = json!({
            "mcp": { "a": {
                "command": ["run", "--token", "abcdefgh", "--mode", "production"],
                "environment": { "NODE_ENV": "production", "DEBUG": "true", "BRANCH": "main", "API_TOKEN": "topsecret1" },
                "headers": { "Content-Type": "application/json", "Authorization": "Bearer abcdefgh1" },
            } },
            "provider": { "p": { "options": { "apiKey": "ollama", "baseURL": "https://me:passw0rd@h/" } } },
        });
        let shown = outrigger_config::redacted(&value);
        assert_eq!(shown["mcp"]["a"]["environment"]["NODE_ENV"], "(redacted)");
        let mut found = Vec::new();
        differing("", &value, &shown, &mut found);
        found.sort();
        assert_eq!(
            found,
            [
                "Bearer abcdefgh1",
                "abcdefgh",
                "abcdefgh1",
                "https://me:passw0rd@h/",
                "topsecret1",
            ]
        );
    }
}
