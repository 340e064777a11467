//! The client of an agent, in this process or at a server, with one interface for all routes and events. See the crate's
//! README.

mod asker;
mod connection;
mod error;
mod events;
pub mod input;
mod model_question;
mod permission_display;
mod remote;
pub mod session;

pub use self::asker::{Asker, Sessions};
pub use self::connection::{Connection, encoded};
pub use self::error::ClientError;
pub use self::events::{Events, StreamItem};
pub use self::model_question::ModelQuestion;
pub use self::permission_display::Display;
pub use self::remote::{Login, Remote, USERNAME};
