//! What a handler changed, as its record keeps it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The values that a handler changed (A2). Secrets are removed from them, and large ones are cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedValues {
    /// Place by place.
    pub places: Vec<ChangedValue>,
    /// How many places changed besides.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

impl ChangedValues {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.more == 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedValue {
    /// Where, as a JSON pointer into the output of the hook. What was removed from a list has its index from before.
    pub at: String,
    /// What stood there; absent where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordedValue>,
    /// What stands there now; absent where it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordedValue>,
}

/// A value, as far as a record keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RecordedValue {
    /// All of it.
    Whole {
        /// The value.
        value: Value,
    },
    /// A part of it, from where it differs: of a text, or of the JSON text of anything else.
    Excerpt {
        /// The part.
        text: String,
        /// Bytes of the text before it.
        from: u64,
        /// Bytes of the whole text.
        bytes: u64,
    },
    /// Nothing but what tells it from others.
    Digest {
        /// Bytes of its JSON text.
        bytes: u64,
        /// SHA-256 of that, in hexadecimal digits.
        sha256: String,
    },
}
