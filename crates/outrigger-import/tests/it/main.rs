//! Stored sessions of real programs, and files that somebody forged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod forged;
mod recorded;
mod round_trip;
mod support;
