//! Lists every value with its origin, for `outrigger config show`.

use serde::Serialize;
use serde_json::Value;

use crate::opencode::merge::all_leaves;
use crate::origin::nearest;
use crate::redact::{REDACTED, is_secret, without};
use crate::{Loaded, Origin};

/// A value with its origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// JSON pointer in opencode.json's document, or the dotted name of a setting.
    pub name: String,
    /// Value; a secret is replaced (invariant 10).
    pub value: Value,
    /// Origin of the value.
    pub origin: Origin,
}

impl Loaded {
    /// Returns every value of the merged document, in its order. `plugin_origins` is omitted, since it is
    /// redundant.
    pub fn show(&self) -> Vec<Shown> {
        let redacted = self.redacted();
        let mut out = Vec::new();
        for pointer in all_leaves(&self.value) {
            let hidden = Value::from(REDACTED);
            let value = redacted.pointer(&pointer).unwrap_or(&hidden);
            match value {
                _ if pointer == "/plugin_origins" => {}
                Value::Array(items)
                    if !items.is_empty()
                        && matches!(pointer.as_str(), "/plugin" | "/instructions") =>
                {
                    for (index, item) in items.iter().enumerate() {
                        out.push(self.shown(format!("{pointer}/{index}"), item));
                    }
                }
                _ => out.push(self.shown(pointer, value)),
            }
        }
        out
    }

    fn shown(&self, pointer: String, value: &Value) -> Shown {
        let value = if is_secret(&pointer) {
            REDACTED.into()
        } else {
            value.clone()
        };
        Shown {
            origin: nearest(&self.origins, &pointer),
            name: pointer,
            value,
        }
    }

    /// Returns every setting of `outrigger.toml`, defaults included.
    pub fn show_settings(&self) -> Vec<Shown> {
        let values = self.settings.list();
        let origin = |name: &str| {
            self.settings_origins
                .get(name)
                .cloned()
                .unwrap_or(Origin::Default)
        };
        values
            .into_iter()
            .map(|(name, value)| Shown {
                origin: origin(&name),
                name,
                value,
            })
            .collect()
    }

    /// Returns the merged document without its secrets, for every caller without a grant for them (invariant 10).
    #[must_use]
    pub fn redacted(&self) -> Value {
        without(&self.value, &self.secrets)
    }
}
