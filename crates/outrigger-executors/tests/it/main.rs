//! The output of real programs, and possible output of bad ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounds;
mod drive;
mod fixtures;
