//! Tests that cannot be run on a machine: never a silent pass.
//!
//! What could not be tested is said on standard error and, where `OUTRIGGER_SKIPPED` names a file, in a line there;
//! `cargo xtask test` counts these lines and prints them. Where the needed thing is known to be in reach, skipping is a
//! failure: `OUTRIGGER_NEED_NPM=1`, which `cargo xtask test` sets when the registry answers.

use std::fs::OpenOptions;
use std::io::Write as _;

/// This test, or a part of it, is not run, since npm's registry is out of reach.
///
/// # Panics
///
/// Where the registry is known to answer.
#[track_caller]
pub fn skip_npm(why: &str) {
    let needed = std::env::var_os("OUTRIGGER_NEED_NPM").is_some_and(|value| value == "1");
    assert!(
        !needed,
        "skipped although npm's registry answers (OUTRIGGER_NEED_NPM=1): {why}"
    );
    skip(why);
}

/// This test, or a part of it, is not run here.
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
