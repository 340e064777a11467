//! The same rules for an unprivileged user: if the tests run as root, the rows of docs/bypass.md that the system enforces
//! are tried as both.

use outrigger_test_support::unprivileged::{Again, attempts};

/// Tests that no attempt names, but that differ by user.
const MORE: &[&str] = &[
    "confine::tcp",
    "connects::what_knows_of_no_proxy_is_led_to_what_was_granted",
    "cross_process::a_sandboxed_process_rules_its_own",
    "namespace::its_end_is_reported_as_it_was",
];

/// Tests about root: what it may still do in a sandbox, and switching to another user.
const OF_ROOT: &[&str] = &[
    "confine::a_confined_root_cannot_get_around_it",
    "connects::another_user_does_not_connect_as_the_host",
    "unprivileged::the_rules_hold_for_a_user_without_rights",
];

#[test]
fn the_rules_hold_for_a_user_without_rights() {
    let mut tests = attempts("crates/outrigger-sandbox/tests/it/");
    tests.extend(MORE.iter().map(|test| (*test).to_owned()));
    for test in OF_ROOT {
        assert!(tests.remove(*test), "{test} is not an attempt");
    }
    Again::of(tests).run();
}
