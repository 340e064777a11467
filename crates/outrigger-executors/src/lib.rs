//! Other vendors' agents at work in a session (E1): Claude Code, Codex, Gemini CLI, and whatever speaks the Agent Client Protocol.
//!
//! An [`Executor`] is what the user names. [`Executor::protocol`] makes a state machine of it that turns the lines of the process
//! into [`Step`]s and answers into lines; it does no I/O. [`drive`] runs one over the streams of a process, within limits of memory
//! and time, and hands what comes to a [`Host`]. [`Work`] is a whole turn of a session: the process in its sandbox, and what it says,
//! stored and published by a [`Keeper`].
//!
//! Calls come out under the names and arguments of our own tools where there is a counterpart ([`calls`]), so that rules, hooks, the
//! audit and whatever shows a conversation see one form for all of them. What the vendor called it stays in the facts.

#![cfg_attr(not(test), warn(clippy::indexing_slicing, clippy::string_slice))]

mod access;
mod acp;
mod calls;
mod claude;
mod codex;
mod drive;
mod executor;
mod gemini;
mod process_context;
mod step;
mod stored;
mod used;
mod wire;
mod work;

pub use access::{Access, Unasked};
pub use drive::{Host, Limits, Streams, drive};
pub use executor::{Executor, ExecutorError, Launch};
pub use process_context::ProcessContext;
pub use step::{End, Image, Protocol, Question, Said, Step, Task, Verdict};
pub use stored::{Piece, Stored, StoredClaude, StoredCodex};
pub use used::Used;
pub use work::{Asked, Boxed, Keeper, Work, is_as_said, prompt_texts, title};
