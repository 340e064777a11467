//! Files of model providers, which only the user can choose.

use serde_json::Value;

/// Restores settings about files that this program reads and writes for a provider, without a sandbox, if a
/// plugin changed them.
pub(crate) fn keep_files(before: &Value, after: &mut Value) {
    let providers = after.get_mut("provider").and_then(Value::as_object_mut);
    for (name, entry) in providers.into_iter().flatten() {
        let Some(options) = entry.get_mut("options").and_then(Value::as_object_mut) else {
            continue;
        };
        for key in outrigger_models::FILES {
            let known = ["provider", name, "options", key]
                .iter()
                .try_fold(before, |value, key| value.get(key));
            if options.get(key) == known {
                continue;
            }
            tracing::warn!(
                "[config] a plugin changed `{key}` of the provider {name}, which only the user can choose: the change is ignored"
            );
            options.shift_remove(key);
            options.extend(known.map(|value| (key.to_owned(), value.clone())));
        }
    }
}
