//! Texts, code, diffs and tool calls as rows.

pub mod card;
pub mod diff;
pub mod highlight;
pub mod markdown;
pub mod text;
pub mod theme;
