//! How large payloads travel: by file, as differences to a mirror, with long texts beside the JSON.

pub(crate) mod exchange;
pub(crate) mod mirror;
pub(crate) mod texts;
