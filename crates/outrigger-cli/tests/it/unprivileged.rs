//! The attempts of docs/bypass/attempts.toml that need the whole program, once more for a user without rights, where the tests run as root.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::*;

const ATTEMPTS: &str = include_str!("../../../../docs/bypass/attempts.toml");

/// The tests of this binary that attempts name, as it knows them: `escapes::a_test`.
fn tests() -> BTreeSet<String> {
    let name = |line: &str| {
        let test = line
            .trim()
            .strip_prefix("\"crates/outrigger-cli/tests/it/")?;
        let (test, _) = test.split_once('"')?;
        Some(test.replacen(".rs::", "::", 1))
    };
    ATTEMPTS.lines().filter_map(name).collect()
}

/// Whether anybody may go there.
fn is_open(path: &Path) -> bool {
    let mode = |path: &Path| path.metadata().map_or(0, |meta| meta.permissions().mode());
    path.ancestors().all(|path| mode(path) & 0o001 != 0)
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "these very tests, as another user"
)]
fn what_is_refused_is_refused_for_a_user_without_rights() {
    if !rustix::process::geteuid().is_root() {
        return skip("this is a user without rights already");
    }
    let exe = std::env::current_exe().unwrap();
    let programs = [exe.clone(), env!("CARGO_BIN_EXE_outrigger").into()];
    if let Some(shut) = programs.iter().chain(&bun()).find(|path| !is_open(path)) {
        return skip(&format!("only root may enter {}", shut.display()));
    }
    let tests = tests();
    // In a new clone no other test has made it yet, and that user may not.
    crate::npm::kept("xdg");
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).unwrap();
    let run = |tests: &BTreeSet<String>| {
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&exe)
            .args(["--exact", "--nocapture", "--test-threads=4"])
            .args(tests)
            .env("HOME", home.path())
            .env("TMPDIR", home.path())
            .env("INSTA_UPDATE", "no")
            .env_remove("OUTRIGGER_SKIPPED")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let all_pass = |said: &str, tests: &BTreeSet<String>| {
        said.contains(&format!("test result: ok. {} passed", tests.len()))
    };
    let (said, errors) = run(&tests);
    for line in errors.lines().filter(|line| line.starts_with("skipped: ")) {
        skip(&format!("as a user without rights: {line}"));
    }
    assert!(all_pass(&said, &tests), "{said}\n{errors}");
}
