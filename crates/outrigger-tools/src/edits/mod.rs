//! How texts are changed: finding what a model meant, patches, differences.

pub(crate) mod diff;
pub(crate) mod matching;
pub(crate) mod patch;
