//! The terminal interface: a full-screen conversation with the agent. See the crate's README.

pub mod app;
pub mod render;
mod runtime;
pub mod state;
pub mod view;

pub use self::app::{App, Options};
pub use self::render::theme::{Depth, Theme};
pub use self::runtime::{Host, Services, run};
pub use self::state::effect::{Effect, Input, Start, Then};
pub use self::state::keys::key_problems;
