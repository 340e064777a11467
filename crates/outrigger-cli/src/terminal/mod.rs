//! Input and output at the terminal.

pub(crate) mod download;
mod input;
mod json;
mod output;
mod paint;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod transcript;

pub(crate) use self::input::standard_input;
pub(crate) use self::json::json_line;
pub(crate) use self::output::*;
pub(crate) use self::paint::Paint;
