//! Secrets that must not be recorded: keys of the configuration, of the environment, and stored ones.

use std::collections::BTreeMap;

use outrigger_config::Loaded;
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
    differing(&config.value, &config.redacted(), &mut secrets);
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

/// Collects the texts of `value` that differ in `shown`.
fn differing(value: &Value, shown: &Value, out: &mut Vec<String>) {
    match (value, shown) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                differing(value, b.get(key).unwrap_or(&Value::Null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (value, shown) in a.iter().zip(b) {
                differing(value, shown, out);
            }
        }
        (a, b) if a != b => texts(a, out),
        _ => {}
    }
}
