//! Tests against a real Chromium. Where there is none they say so.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod conformance;
mod faults;
mod frames;
mod lending;
mod lent;
mod network;
mod refusals;
mod shared;
mod support;
mod tools;
mod windows;
