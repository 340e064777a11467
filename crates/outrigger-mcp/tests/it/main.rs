//! Servers with every kind of behaviour, as real processes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod calls;
mod catalog;
mod ends;
mod login_places;
mod logins;
mod remote;
mod starts;
mod support;
