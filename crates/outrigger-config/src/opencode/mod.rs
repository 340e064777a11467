//! OpenCode's configuration: `opencode.json` and the Markdown files beside it, as OpenCode 1.18.33 reads them.

pub(crate) mod check;
pub(crate) mod edit;
pub(crate) mod entries;
pub(crate) mod finish;
pub(crate) mod jsonc;
pub(crate) mod markdown;
pub(crate) mod merge;
pub(crate) mod normalize;
pub mod permission;
pub(crate) mod plugin_list;
pub(crate) mod substitute;
pub(crate) mod typed;
pub(crate) mod unmatched;
pub(crate) mod username;
