//! Imports stored sessions of other programs.
//!
//! - A [`Source`] lists what a program stored ([`StoredSession`]) and reads sessions ([`Transcript`]). Files are opened read-only; what
//!   cannot be read is a [`Problem`] with its location, and the rest is not lost.
//! - [`accept`] converts a transcript to a session. A transcript is untrusted: its messages are kept, its decisions are not.
//! - [`write`] stores it in the log, or only what is new in an already imported one.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod accept;
mod alignment;
mod error;
mod growth;
mod ids;
mod parts;
mod program;
mod source;
mod transcript;
mod write;

pub use accept::{Accepted, Destination, accept};
pub use error::{ImportError, Problem};
pub use program::{Program, StoredSession};
pub use source::Source;
pub use transcript::Transcript;
pub use write::{Outcome, outlook, write};
