//! Real plugin processes: Node always, Bun if it is installed (see `support::bun`).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests are tests"
)]

mod doc;
mod faults;
mod files;
mod frames;
mod hooks;
mod load;
mod modules;
mod streams;
mod support;
mod tool_files;
mod tools;
