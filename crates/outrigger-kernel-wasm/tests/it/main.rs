//! The kernel by its one function answers as the kernel does, whatever comes in. With `OUTRIGGER_KERNEL_CASES=FOLDER` every
//! request and its answer is written there: `cargo xtask extension --check` asks the same of the WebAssembly.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(
    dead_code,
    reason = "what generates turns is shared with the kernel's tests"
)]

mod browser;
mod cases;
mod chains;
#[path = "../../../outrigger-kernel/tests/it/drive.rs"]
mod drive;
#[path = "../../../outrigger-kernel/tests/it/lines.rs"]
mod lines;
mod rules;
#[path = "../../../outrigger-kernel/tests/it/script.rs"]
mod script;
mod turns;
#[path = "../../../outrigger-kernel/tests/it/world.rs"]
mod world;

fn config(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}
