//! Servers of a project: a scripted one (tests/it/server.py, a third party from this crate's view) that answers, stays
//! silent, exits and floods.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

mod faults;
mod support;
mod touch;
