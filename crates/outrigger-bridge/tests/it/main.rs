//! The bridge over real connections on loopback, with an executor that only writes down what it is asked.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod limits;
mod provider;
mod support;
