//! The kernel's laws from outside: guarantees of a chain, a turn and a merger for any input.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod admission;
mod agent_parts;
mod breaker;
mod chain;
mod chain_laws;
mod compact;
mod contracts;
mod drive;
mod gold;
mod guard;
mod guarded;
mod history;
mod invariant;
mod laws;
mod lines;
mod merge;
mod merge_laws;
mod merge_pass;
mod payloads;
mod repeats;
mod resume;
mod script;
mod steering;
mod subset;
mod turn;
mod turn_ends;
mod turn_stops;
mod world;

/// Returns a configuration with few cases, so that the whole binary runs in seconds; the message of a failure
/// has its case.
fn cases(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
