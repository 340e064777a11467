//! Sanitizes untrusted text for terminals, and frames it in questions. See the crate's README.

mod frame;
mod sanitize;

pub use self::frame::{Frame, Shown, Size, brief, prompt, set_off, set_off_below, shortened};
pub use self::sanitize::{is_control, is_invisible, name, one_line, question, safe};
