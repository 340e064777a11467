//! Text changes: finding what a model meant, patches, diffs.

pub(crate) mod diff;
pub(crate) mod matching;
pub(crate) mod patch;
