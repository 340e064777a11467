//! TOML files: reading them in a fixed form, and changing one value.

pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod strict;
