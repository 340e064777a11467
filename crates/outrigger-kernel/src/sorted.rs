//! A map of few entries: a list that is sorted by key.
//!
//! The keys of a turn are ids that grow, so that a new entry is mostly the last one. Each `BTreeMap` of other types is
//! about 5 KB of code, and the kernel is loaded each time that the worker of the browser extension wakes.

use alloc::vec::{self, Vec};

/// A map with the entries in the order of their keys. Inserting before others moves these.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(it, _)| it.cmp(key))
    }

    /// Adds an entry, or replaces the value of its key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Ok(at) => {
                if let Some((_, old)) = self.0.get_mut(at) {
                    *old = value;
                }
            }
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let at = self.find(key).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// Removes an entry, and returns its value.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_as_a_btree_map(steps in prop::collection::vec((any::<bool>(), 0..9_u8, any::<u8>()), 0..40)) {
            let (mut ours, mut theirs) = (SortedMap::default(), BTreeMap::new());
            for (inserts, key, value) in steps {
                if inserts {
                    ours.insert(key, value);
                    theirs.insert(key, value);
                } else {
                    prop_assert_eq!(ours.remove(&key), theirs.remove(&key));
                }
                prop_assert_eq!(ours.get(&key), theirs.get(&key));
                prop_assert_eq!(ours.get_mut(&key), theirs.get_mut(&key));
                prop_assert!(ours.iter().eq(theirs.iter()));
                prop_assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
                prop_assert_eq!(ours.is_empty(), theirs.is_empty());
            }
            prop_assert!(ours.clone().into_iter().eq(theirs));
            ours.clear();
            prop_assert!(ours.is_empty());
        }
    }
}
