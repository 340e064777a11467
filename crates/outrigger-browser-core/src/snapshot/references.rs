//! References: stable short names of elements.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Maximum number of stored references per tab; beyond it, those of unloaded documents are dropped.
const MAX_KEPT: usize = 20_000;

/// The key of an element in its browser: a document, which is loaded once, and the number of a node in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The document, by a name that is not reused.
    pub document: String,
    /// The node; its number is valid as long as it is in the document.
    pub node: i64,
}

/// The references of a tab. A number is never reused for another element.
#[derive(Clone, Debug, Default)]
pub struct References {
    last: u32,
    numbers: BTreeMap<Key, u32>,
    keys: BTreeMap<u32, Key>,
}

/// The references of a tab in serialised form, for a host that ends before the browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReferences {
    last: u32,
    keys: Vec<(u32, Key)>,
}

impl References {
    /// Returns their serialised form.
    #[must_use]
    pub fn keep(&self) -> KeptReferences {
        let keys = self.keys.iter();
        KeptReferences {
            last: self.last,
            keys: keys.map(|(number, key)| (*number, key.clone())).collect(),
        }
    }

    /// Restores them.
    #[must_use]
    pub fn recall(kept: KeptReferences) -> Self {
        let numbers = kept.keys.iter().map(|(number, key)| (key.clone(), *number));
        Self {
            last: kept.last,
            numbers: numbers.collect(),
            keys: kept.keys.into_iter().collect(),
        }
    }

    /// Returns the number of an element; assigns a new one if it has none.
    pub fn of(&mut self, key: &Key) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        self.last += 1;
        self.numbers.insert(key.clone(), self.last);
        self.keys.insert(self.last, key.clone());
        while self.keys.len() > MAX_KEPT {
            if let Some((_, oldest)) = self.keys.pop_first() {
                self.numbers.remove(&oldest);
            }
        }
        self.last
    }

    /// Returns the element of a reference, such as `e12`. `None` if it was never assigned, or its document is gone.
    #[must_use]
    pub fn key(&self, reference: &str) -> Option<&Key> {
        self.keys.get(&number(reference)?)
    }

    /// Removes an unloaded document; its references become invalid.
    pub fn forget(&mut self, document: &str) {
        self.keys.retain(|_, key| key.document != document);
        self.numbers.retain(|key, _| key.document != document);
    }
}

/// Parses a reference such as `e12` (models also write `ref=e12` and `[e12]`).
#[must_use]
pub fn number(reference: &str) -> Option<u32> {
    let bare = reference.trim().trim_matches(['[', ']', '@', '#']);
    let bare = bare.strip_prefix("ref=").unwrap_or(bare);
    bare.strip_prefix('e')?.parse().ok()
}
