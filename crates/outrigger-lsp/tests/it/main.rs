//! Servers of a project: a scripted one (tests/it/server.py, a third party as far as this crate is concerned) that answers,
//! keeps silent, ends and floods.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

mod faults;
mod support;
mod touch;
