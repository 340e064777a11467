//! Names of permissions that no tool has as its own name. Rules, questions and records use them.

/// Leaving the project folder.
pub const EXTERNAL_DIRECTORY: &str = "external_directory";

/// Repeating a call that does not help the model.
pub const DOOM_LOOP: &str = "doom_loop";
