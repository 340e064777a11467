//! Decisions about a browser, without one (C9, 6 and 7; C12): who may change a tab ([`lease`]), actions and their
//! risks ([`action`]), whether an action had its effect ([`expect`]), what a model reads of a page ([`snapshot`]), which addresses and fields
//! are protected ([`site`], [`field`]), and how text of a page is marked ([`untrusted`]).
//!
//! It is `no_std`, without I/O, clock and randomness; time is an input in milliseconds. Providers (`outrigger-browser`, and the
//! extension with this code as WebAssembly) call it and carry out its decisions.
#![no_std]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod action;
pub mod expect;
pub mod field;
pub mod frame;
pub mod lease;
pub mod masked;
pub mod pattern;
pub mod site;
pub mod snapshot;
pub mod untrusted;
pub mod verdict;
