//! Other vendors' agents in a session (E1): Claude Code, Codex, Gemini CLI, and any agent with the Agent Client Protocol.
//!
//! The user names an [`Executor`]. [`Executor::protocol`] creates its state machine, which converts the process's lines to [`Step`]s
//! and answers to lines; it does no I/O. [`drive`] runs one over the streams of a process, within limits of memory and time, and
//! passes its output to a [`Host`]. [`Work`] is a whole turn of a session: the process in its sandbox, and its output, stored and
//! published by a [`Keeper`].
//!
//! Calls get the names and arguments of our own tools if there is a counterpart ([`calls`]), so that rules, hooks, the audit and
//! displays see one form for all of them. The vendor's name is kept in the facts.

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
pub use step::{End, Image, Protocol, Question, Step, Task, VendorOutput, Verdict};
pub use stored::{Piece, Stored, StoredClaude, StoredCodex};
pub use used::Used;
pub use work::{Boxed, Keeper, PromptContext, Work, is_as_said, prompt_texts, title};
