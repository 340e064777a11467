//! `cargo xtask fuzz-shell`: compares `outrigger-shell-parse` with real shells for any duration.

use crate::sh::{self, Arguments, check, there};
use crate::{Result, failed, usage};

/// Runs the test, which reads its duration from the environment.
pub(crate) fn shell(arguments: &[String]) -> Result {
    let (mut minutes, mut seed) = ("10", "2");
    let mut given = Arguments::new(arguments);
    while let Some(word) = given.next() {
        match word {
            "--minutes" => minutes = given.value("--minutes")?,
            "--seed" => seed = given.value("--seed")?,
            word => return usage(format!("fuzz-shell takes no `{word}`")),
        }
    }
    if !there("strace") {
        return failed("fuzz-shell needs strace: run `cargo xtask setup` as root, or install it");
    }
    let mut test = sh::cargo(&[
        "test",
        "--package",
        "outrigger-shell-parse",
        "--test",
        "it",
        "--",
        "--ignored",
        "--nocapture",
        "fuzz",
    ]);
    test.env("OUTRIGGER_FUZZ_MINUTES", minutes);
    test.env("OUTRIGGER_FUZZ_SEED", seed);
    check(&mut test)
}
