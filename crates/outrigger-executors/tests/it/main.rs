//! What the real programs printed, and what bad ones could.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounds;
mod drive;
mod fixtures;
