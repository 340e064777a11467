//! References to handlers, and what they may change.

use serde::{Deserialize, Serialize};

/// A field of `output` that handlers may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenField {
    /// Its name; `*` for any.
    pub key: String,
    /// The type that it must keep: `any`, `string`, `number`, `boolean`, `array` or `object`.
    pub kind: String,
    /// It may not be deleted or null.
    pub required: bool,
}

/// A hooks object in a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandlerRef {
    /// Plugin.
    pub plugin: String,
    /// Index into [`crate::rpc::LoadedPlugin::instances`].
    pub instance: usize,
}
