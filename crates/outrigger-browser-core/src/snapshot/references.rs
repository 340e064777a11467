//! References: short names of elements that stay with them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// References that are kept for one tab; beyond that those of documents that are gone are forgotten.
const MAX_KEPT: usize = 20_000;

/// What an element is known by in its browser: a document, which is loaded once, and the number of a node in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The document, by a name that is never used again.
    pub document: String,
    /// The node; its number stays as long as it is in the document.
    pub node: i64,
}

/// The references of a tab. A number is never used for another element.
#[derive(Clone, Debug, Default)]
pub struct References {
    last: u32,
    numbers: BTreeMap<Key, u32>,
    keys: BTreeMap<u32, Key>,
}

/// The references of a tab, as they are kept where their host ends before the browser does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReferences {
    last: u32,
    keys: Vec<(u32, Key)>,
}

impl References {
    /// What is to be kept of them.
    #[must_use]
    pub fn keep(&self) -> KeptReferences {
        let keys = self.keys.iter();
        KeptReferences {
            last: self.last,
            keys: keys.map(|(number, key)| (*number, key.clone())).collect(),
        }
    }

    /// Those that were kept.
    #[must_use]
    pub fn recall(kept: KeptReferences) -> Self {
        let numbers = kept.keys.iter().map(|(number, key)| (key.clone(), *number));
        Self {
            last: kept.last,
            numbers: numbers.collect(),
            keys: kept.keys.into_iter().collect(),
        }
    }

    /// The number of an element, a new one where it has none.
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

    /// The element of a reference, as `e12`. `None`: it was never given, or its document is gone.
    #[must_use]
    pub fn key(&self, reference: &str) -> Option<&Key> {
        self.keys.get(&number(reference)?)
    }

    /// A document is gone: its references lead nowhere from now on.
    pub fn forget(&mut self, document: &str) {
        self.keys.retain(|_, key| key.document != document);
        self.numbers.retain(|key, _| key.document != document);
    }
}

/// The number of a reference, as `e12` (also `ref=e12` and `[e12]`, as models write it).
#[must_use]
pub fn number(reference: &str) -> Option<u32> {
    let bare = reference.trim().trim_matches(['[', ']', '@', '#']);
    let bare = bare.strip_prefix("ref=").unwrap_or(bare);
    bare.strip_prefix('e')?.parse().ok()
}
