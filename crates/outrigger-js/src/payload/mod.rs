//! Transfer of large payloads: by file, as differences to a mirror, with long texts separate from the JSON.

pub(crate) mod exchange;
pub(crate) mod mirror;
pub(crate) mod texts;
