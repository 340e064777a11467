//! Providers, models and options in the form for plugins, without secrets, and the way back into a request.

use outrigger_protocol::Object;
use outrigger_protocol::keys::{is_secret_name, is_secret_option, without_logins};
use serde_json::Value;

use crate::secret::{REMOVED, Secrets};

/// Removes a provider's secrets, known and likely ones.
pub(super) struct Shown<'a>(pub(super) &'a Secrets);

impl Shown<'_> {
    /// Redacts options: values with names of secrets, headers, credentials, values that are not choices, and known secrets.
    pub(super) fn options(&self, options: &mut Object) {
        self.object(options, true);
    }

    /// Redacts options by name only.
    pub(super) fn named(&self, options: &mut Object) {
        self.object(options, false);
    }

    /// Redacts a model, as JSON.
    pub(super) fn model(&self, model: &mut Value) {
        let Value::Object(fields) = model else { return };
        for (name, value) in fields.iter_mut() {
            let is_options = matches!(name.as_str(), "options" | "variants");
            self.value(name, value, is_options);
        }
    }

    fn object(&self, fields: &mut Object, are_options: bool) {
        for (name, value) in fields.iter_mut() {
            self.value(name, value, are_options);
        }
    }

    fn value(&self, name: &str, value: &mut Value, is_option: bool) {
        match value {
            // Headers may be secret under any name, and so may the parts of credentials.
            Value::Object(_) if name == "headers" || is_secret_name(name) => hide(value),
            Value::Object(fields) => self.object(fields, is_option),
            Value::Array(items) => items
                .iter_mut()
                .for_each(|it| self.value(name, it, is_option)),
            Value::String(text) if is_secret_name(name) => *text = REMOVED.into(),
            Value::String(text) if is_option && is_secret_option(name, text) => {
                *text = REMOVED.into();
            }
            Value::String(text) => {
                let shown = self.0.scrub_exact(text);
                *text = without_logins(&shown, REMOVED).unwrap_or(shown);
            }
            _ => {}
        }
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) => *text = REMOVED.into(),
        _ => {}
    }
}

/// Restores redacted values of options that are unchanged; placeholders elsewhere are removed. `shown` and `real`: as plugins got them, and
/// the original.
pub fn put_back(options: &mut Object, shown: &Object, real: &Object) {
    options.retain(|name, value| restore(value, shown.get(name), real.get(name)));
}

/// Returns `false` if a placeholder remains.
fn restore(value: &mut Value, shown: Option<&Value>, real: Option<&Value>) -> bool {
    match value {
        Value::Object(fields) => {
            let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
            put_back(
                fields,
                &of(shown).unwrap_or_default(),
                &of(real).unwrap_or_default(),
            );
            true
        }
        Value::Array(items) => {
            let at = |value: Option<&Value>, at: usize| value?.get(at).cloned();
            let mut index = 0;
            items.retain_mut(|item| {
                let (shown, real) = (at(shown, index), at(real, index));
                index += 1;
                restore(item, shown.as_ref(), real.as_ref())
            });
            true
        }
        Value::String(text) if text.contains(REMOVED) => match (shown, real) {
            (Some(shown), Some(real)) if *shown == *text => {
                *value = real.clone();
                true
            }
            _ => false,
        },
        _ => true,
    }
}
