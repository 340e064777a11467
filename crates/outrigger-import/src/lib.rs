//! Stored sessions of other programs, as sessions of ours.
//!
//! - A [`Source`] lists what a program stored ([`StoredSession`]) and reads one of these ([`Transcript`]). Files are opened to be read only; what
//!   cannot be read is a [`Problem`] with its place, and the rest is not lost.
//! - [`accept`] makes a session of a transcript. A transcript is text from outside: what it says is kept, what it would decide is not.
//! - [`write`] puts it into the store's log, or what is new of one that is there.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod accept;
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
