//! Text from outside as a terminal may have it, and the frames in which questions show it. See the crate's README.

mod frame;
mod sanitize;

pub use self::frame::{Frame, Shown, Size, brief, prompt, set_off, set_off_below, shortened};
pub use self::sanitize::{is_control, is_invisible, name, question, safe};
