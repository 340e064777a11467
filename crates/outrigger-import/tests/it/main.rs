//! Stored sessions of real programs, and forged files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod forged;
mod handover;
mod recorded;
mod round_trip;
mod support;
