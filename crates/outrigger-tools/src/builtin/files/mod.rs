//! The bundled tools that find, read and change files.

pub(crate) mod changed;
pub(crate) mod edit;
pub(crate) mod find;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod target;
pub(crate) mod write;
