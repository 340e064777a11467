//! What decides about a browser, without one (C9, 6 and 7; C12): who may change a tab ([`lease`]), what an action is and how much it
//! risks ([`action`]), whether it had its effect ([`expect`]), what a model reads of a page ([`snapshot`]), which addresses and fields
//! are left alone ([`site`], [`field`]), and how text of a page is marked ([`untrusted`]).
//!
//! It is `no_std`: there is no I/O, no clock and no randomness, time comes in as milliseconds. Providers (`outrigger-browser`, and later
//! an extension with this code as WebAssembly) ask it and carry out what it says.
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
