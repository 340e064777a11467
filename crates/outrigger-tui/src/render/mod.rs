//! Texts, code, diffs and tool calls as rows.

mod body;
pub mod card;
pub mod diff;
pub mod highlight;
pub mod markdown;
mod nesting;
mod table;
pub mod text;
pub mod theme;
