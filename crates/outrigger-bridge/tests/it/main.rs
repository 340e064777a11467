//! The bridge over real connections on loopback, with hands that only write down what they are asked.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod limits;
mod provider;
mod support;
