//! Tests that cannot run on a machine: never a silent pass.
//!
//! What could not be tested is printed to standard error and, if `OUTRIGGER_SKIPPED` names a file, added as a line
//! there; `cargo xtask test` counts these lines and prints them. If the required resource is known to be available,
//! skipping is a failure: `OUTRIGGER_NEED_NPM=1`, which `cargo xtask test` sets if the registry answers.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Records that this test, or a part of it, is skipped because npm's registry cannot be reached.
///
/// # Panics
///
/// If the registry is known to answer.
#[track_caller]
pub fn skip_npm(why: &str) {
    let needed = std::env::var_os("OUTRIGGER_NEED_NPM").is_some_and(|value| value == "1");
    assert!(
        !needed,
        "skipped although npm's registry answers (OUTRIGGER_NEED_NPM=1): {why}"
    );
    skip(why);
}

/// Records that this test, or a part of it, is skipped.
///
/// ```no_run
/// use outrigger_test_support::skip::skip;
///
/// if !std::path::Path::new("/usr/bin/tmux").exists() {
///     return skip("there is no tmux");
/// }
/// ```
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}", thread.name().unwrap_or("a test"));
    eprintln!("skipped: {line}");
    if let Some(path) = std::env::var_os("OUTRIGGER_SKIPPED") {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        // One write: tests of other processes write to the same file.
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}
