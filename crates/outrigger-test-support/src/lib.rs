//! What the tests of several crates share. Only tests depend on it (`tidy:test-support`), and it depends on no other crate of
//! this repository, so that a test binary is not built anew for what it does not use.
//!
//! - [`model`]: a scripted model behind a port of this machine
//! - [`World`]: the folders of one test, and programs that run in them ([`Running`], [`Done`])
//! - [`misbehaving`]: the plugin that commits every fault
//! - [`process`]: whether processes live, and waiting for what happens in another one
//! - [`free_port`]: a port that no other test has
//! - [`skip`]: tests that cannot run on a machine
//! - [`unprivileged`]: tests once more as a user without rights
//!
//! What needs an agent or the binary stays with its crate: `Harness` in the tests of `outrigger-server`, `Program` in those of
//! `outrigger-cli`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

pub mod misbehaving;
pub mod model;
mod port;
pub mod process;
mod program;
mod runtime;
pub mod skip;
pub mod unprivileged;
mod world;

pub use port::free_port;
pub use program::{Done, Running};
pub use runtime::{bun, bun_or_skip};
pub use world::{World, merge};
