//! OpenCode's second API (`/api/...`).

pub(crate) mod catalog;
pub(crate) mod files;
pub(crate) mod session;
