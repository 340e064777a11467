//! The runtime and the bundled tools against real folders, real processes and a host that only records its requests.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod access;
mod answers;
mod declared;
mod files;
mod find;
mod mentions;
mod optional;
mod patch;
mod routes;
mod runtime;
mod session;
mod shell;
mod support;
mod web;
