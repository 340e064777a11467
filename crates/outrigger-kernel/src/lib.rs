//! Pure decisions: given what happened, what must happen next.
//!
//! - [`turn`]: the state machine of a turn. The agent reports what happened and carries out the effects that it
//!   returns.
//! - [`hooks`]: the one table of hook points, and the chain that decides which handler is called next and folds the
//!   answers.
//! - [`guard`]: what no chain may change, whatever its handlers answer.
//! - [`admission`]: which plugins should run, and why the others should not.
//! - [`breaker`]: when a hook that keeps timing out is skipped.
//! - [`permission`]: which rule applies to a request.
//! - [`routing`]: which provider a call is bound to.
//! - [`merge`]: start and result of a tool call become one message.
//!
//! Invariant 1: this crate is `no_std`, so that I/O, the clock and threads cannot be named, and it depends only on
//! `outrigger-protocol` and serde. Time, randomness and everything read from the world come in as data.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod admission;
pub mod breaker;
pub mod digest;
pub mod guard;
pub mod hooks;
pub mod merge;
pub mod permission;
pub mod repeats;
pub mod routing;
mod sorted;
pub mod subset;
pub mod turn;
